package e2e

import (
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// The retention schedule, which a worker creates, deletes expired artifacts and no
// others (security 9.4.5: deletion is automatic and verified).
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
	count := func(ns review.Namespace) (n int) {
		t.Helper()
		in.queryRow(`select count(*) from `+string(ns)+`.artifacts`, &n)
		return n
	}
	waitFor(t, "the deletion of raw artifacts", func() bool { return count(review.NamespaceRaw) == 0 })
	if count(review.NamespaceRedacted) == 0 || count(review.NamespaceReport) == 0 {
		t.Error("artifacts that have not expired are deleted too")
	}
}
