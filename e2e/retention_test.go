package e2e

import (
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// Security 9.4.5: the schedule that a worker sets up deletes what is past its
// time, and leaves the rest.
func TestScheduleDeletesWhatExpired(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.startWorker()
	in.mustStart("--wait", "1")
	expireArtifacts(t, in.database, review.NamespaceRaw)
	schedule := in.namespace.ScheduleClient().GetHandle(t.Context(), workflows.RetentionSchedule)
	if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	admin := in.database.Conn(t)
	count := func(ns review.Namespace) (n int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), `select count(*) from `+string(ns)+`.artifacts`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	waitFor(t, "the deletion of raw artifacts", func() bool { return count(review.NamespaceRaw) == 0 })
	if count(review.NamespaceRedacted) == 0 || count(review.NamespaceReport) == 0 {
		t.Error("what had not expired is gone too")
	}
}
