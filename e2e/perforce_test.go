package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// A review continues with what a server with a damaged archive, a refused command and a
// legacy encoding leaves: it is partial, and the mail says what is missing.
func TestImperfectPerforceServer(t *testing.T) {
	t.Parallel()
	const comment = "// \xdd\xf2\xee\xf2 \xf4\xe0\xe9\xeb \xf7\xe8\xf2\xe0\xe5\xf2 \xed\xe0\xf1\xf2\xf0\xee\xe9\xea\xe8\n" // windows-1251
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty, "b.go": clean, "c.go": comment + clean}))
	in.write("p4fault", 0o600, `{"fault":"damaged","path":"//depot/b.go#1"}
{"fault":"message","text":"You don't have permission for this operation.","severity":3,"generic":6,"cmd":"reviews"}
`)
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.Outcome != review.OutcomePartial || a.Findings == 0 {
		t.Errorf("the review ended as %+v", a)
	}
	in.mailedReport("1") // the mail has all of the report
	r := in.report("1")
	unread := map[string]review.SkipReason{}
	for _, f := range r.Coverage {
		if state, why := f.Worst(); state == review.LinesHidden {
			unread[f.Path] = why
		}
	}
	if !maps.Equal(unread, map[string]review.SkipReason{"//depot/b.go": review.SkipDamaged, "//depot/c.go": review.SkipGuessed}) {
		t.Errorf("not read are %v", unread)
	}
	if !slices.Equal(r.Gaps, []review.Gap{review.GapSubscribers}) {
		t.Errorf("gaps are %q", r.Gaps)
	}
}

// A replica that does not know the submit yet is asked again.
func TestLaggingReplica(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.write("p4fault", 0o600, `{"fault":"lag","for":"5s","cmd":"info,describe"}`)
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.Outcome != review.OutcomeFindings {
		t.Errorf("the review ended as %+v", a)
	}
	if n := in.countRows("dead_letters", "true"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	if log := in.log.String(); !strings.Contains(log, "REPLICA_BEHIND") {
		t.Errorf("no attempt found the replica behind:\n%s", log)
	}
}
