package e2e

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// The changelists of two Perforce servers have the same numbers. In one database
// the second server's would be taken for reviewed, and nobody would know.
func TestChangelistOfAnotherServerIsRefused(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded {
		t.Fatalf("the first server's: %+v", a)
	}
	out, err := in.run(nil, "starter", "change-commit", "--server-id", "other", "--wait", "1")
	if err == nil || !strings.Contains(out, "INPUT_INVALID") || !strings.Contains(out, "a database and a namespace of its own") {
		t.Errorf("the second server's: %q, %v", out, err)
	}
}
