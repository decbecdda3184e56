package e2e

import (
	"maps"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
)

// Behind fetch, which learns who wrote it, a bot's change waits for those of people.
func TestBotsWaitForPeople(t *testing.T) {
	t.Parallel()
	r := newRig(t, newDepot(t, manyChanges(1)...))
	r.env = append(r.env, "CRITICIZER_MAIL_BOTS=ali*")
	r.startWorker()
	a := r.mustStart("-wait", "1")
	got := map[string]int32{}
	events := r.namespace.GetWorkflowHistory(t.Context(), a.WorkflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			got[scheduled.GetActivityId()] = scheduled.GetPriority().GetPriorityKey()
		}
	}
	if want := map[string]int32{"open": 0, "fetch": 0, "redact": 5, "critique": 5, "notify": 5, "finish": 0}; !maps.Equal(got, want) {
		t.Errorf("priorities are %v, want %v", got, want)
	}
}
