package e2e

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Two Perforce servers number their changelists alike. If they shared a database, a
// change of the second would count as reviewed.
func TestChangelistOfAnotherServerIsRefused(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded {
		t.Fatalf("the first server's: %+v", a)
	}
	r := in.execute(nil, "starter", "change-commit", "--server-id", "other", "--wait", "1")
	if r.status != exitFailed || !strings.Contains(r.stderr, string(failure.InputInvalid)) {
		t.Errorf("the second server's: %+v", r)
	}
}
