package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// The Temporal UI and the query say where a review stands while it waits, and after its
// end why it is dead.
func TestProgressOnTheRealServer(t *testing.T) {
	t.Parallel()
	model := heldReviewer{release: make(chan struct{})}
	release := sync.OnceFunc(func() { close(model.release) })
	t.Cleanup(release)
	c := newCluster(t, func(stages []any) {
		stages[0].(*activities.Bookkeeper).ChangeLink = "https://swarm.test/changes/{changelist}"
		stages[3].(*activities.Model).Reviewer = &model
	})
	model.Fakes = c.fakes
	c.fakes.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	run, err := c.ExecuteWorkflow(t.Context(), contract.StartOptions(request), workflows.ReviewChangelist, request)
	testkit.NoError(t, err)
	want := workflows.Progress{
		Changelist: 4711, Version: 1, Author: "a person", Link: "https://swarm.test/changes/4711", Stage: "llm",
		Now: "stage llm",
	}
	var got workflows.Progress
	testkit.Eventually(t, "review waits", func() bool {
		c.ask(t, contract.QueryState, &got)
		return got == want
	})
	release()
	if err := run.Get(t.Context(), nil); classOf(err) != failure.AuthDenied {
		t.Fatalf("review ended with %v", err)
	}
	want.Now = "dead in stage llm: AUTH_DENIED, " + failure.AuthDenied.Describe().Hint
	c.ask(t, contract.QueryState, &got)
	if got != want {
		t.Errorf("state is %+v, want %+v", got, want)
	}
	var shown sdkpb.WorkflowMetadata
	c.ask(t, "__temporal_workflow_metadata", &shown)
	if want := "Changelist [4711](https://swarm.test/changes/4711), by a person, review version 1: **" + want.Now + "**\n"; !strings.HasPrefix(shown.GetCurrentDetails(), want) || !strings.Contains(shown.GetCurrentDetails(), "criticizer why 4711") {
		t.Errorf("details are %q, want %q", shown.GetCurrentDetails(), want)
	}
	events := c.GetWorkflowHistory(t.Context(), request.Key, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		activity := event.GetActivityTaskScheduledEventAttributes().GetActivityId()
		if (activity != "" || event.GetEventId() == 1) && event.GetUserMetadata().GetSummary() == nil {
			t.Errorf("event %d, activity %q has no summary", event.GetEventId(), activity)
		}
	}
}

// A heldReviewer answers after release is closed.
type heldReviewer struct {
	*activitiestest.Fakes
	release chan struct{}
}

func (r *heldReviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	<-r.release
	return r.Fakes.Review(ctx, c, o)
}

// ask queries the review's current run.
func (c cluster) ask(t *testing.T, query string, out any) {
	t.Helper()
	var answer converter.EncodedValue
	testkit.Eventually(t, "an answer to "+query, func() (ok bool) {
		var err error
		answer, err = c.QueryWorkflow(t.Context(), request.Key, "", query)
		return err == nil
	})
	testkit.NoError(t, answer.Get(out))
}
