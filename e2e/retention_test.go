package e2e

import (
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// The retention schedule, which a worker creates, deletes expired artifacts of every
// namespace and no others (security 9.4.5: deletion is automatic and verified).
func TestScheduleDeletesWhatExpired(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.startWorker()
	in.mustStart("--wait", "1")
	if _, err := in.database.Conn(t).Exec(t.Context(), `insert into rewrite.artifacts (id, body) values (repeat('a', 64), 'x')`); err != nil {
		t.Fatal(err)
	}
	count := func(ns review.Namespace) (n int) {
		t.Helper()
		in.queryRow(`select count(*) from `+string(ns)+`.artifacts`, &n)
		return n
	}
	expired := []review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceAnswer, review.NamespaceRewrite}
	for _, ns := range expired {
		if count(ns) == 0 {
			t.Errorf("the review has stored no artifact: %s", ns)
		}
		expireArtifacts(t, in.database, ns)
	}
	schedule := in.namespace.ScheduleClient().GetHandle(t.Context(), workflows.RetentionSchedule)
	if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ns := range expired {
		waitFor(t, "the deletion of artifacts: "+string(ns), func() bool { return count(ns) == 0 })
	}
	if count(review.NamespaceReport) == 0 {
		t.Error("artifacts that have not expired are deleted too")
	}
}
