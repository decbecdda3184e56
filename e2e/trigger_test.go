package e2e

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/review"
)

// silentServer accepts connections and never replies.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// While Temporal is down, the trigger neither rejects nor delays a submit. It spools the
// review once, and the next call that reaches Temporal, or drain, starts it.
func TestReviewsAreSpooledWhileTemporalIsDown(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(4)...))
	down := []string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}
	for range 2 { // the same change twice is one review
		var a startResult
		if in.decode(in.execute(down, "starter", "change-commit", "--json", "1"), &a); !a.Spooled {
			t.Fatalf("%+v, want a spooled review", a)
		}
	}
	if r := in.execute(down, "starter", "drain"); r.status != exitFailed {
		t.Errorf("drain without Temporal: %+v", r)
	}
	for range 2 { // the second drain finds an empty spool
		in.output("starter", "drain")
		if n := in.countRuns(`WorkflowType="ReviewChangelist"`); n > 1 {
			t.Errorf("drain started %d reviews, want 1", n)
		}
	}
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded || !a.Duplicate {
		t.Errorf("the spooled review: %+v", a)
	}
	for changelist, address := range map[string]string{"2": "127.0.0.1:1", "3": silentServer(t)} {
		begin := time.Now()
		r := in.execute([]string{"CRITICIZER_TEMPORAL_ADDRESS=" + address}, "starter", "--trigger", "change-commit", changelist)
		if out := r.stdout + r.stderr; r.status != exitOK || strings.Count(out, "\n") != 1 || !strings.Contains(out, address) {
			t.Errorf("%+v, want one line with the address %s", r, address)
		}
		if d := time.Since(begin); d > time.Minute { // 2 s on an idle machine
			t.Errorf("a submit was delayed for %v", d)
		}
	}
	in.mustStart("4")
	in.waitForJobs(4)
	in.write("spool/damaged.json", 0o600, "{")
	if r := in.execute(nil, "starter", "drain"); r.status != exitFailed {
		t.Errorf("drain with a damaged request: %+v", r)
	}
}

// lateLine is printed if Temporal does not answer in time, as on a busy machine.
var lateLine = regexp.MustCompile(`^review of (shelved changelist 1|changelist 1 version 1) is spooled: [^\n]+\n$`)

// The submitter sees the output of a trigger, so it is one line and its exit status is 0,
// even on an error: the submit has happened already. Without --trigger, the same fails. The
// first change may arrive before the first worker, which registers the search attributes of
// the namespace.
func TestTriggerPrintsOneLine(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.write("file", 0o600, "")
	broken := []string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1", "CRITICIZER_STARTER_SPOOL_DIR=" + in.path("file")}
	if r := in.execute(broken, "starter", "--trigger", "change-commit", "1"); r.status != exitOK || strings.Count(r.stdout+r.stderr, "\n") != 1 {
		t.Errorf("with an unusable spool: %+v, want status 0 and one line", r)
	}
	if r := in.execute(broken, "starter", "change-commit", "1"); r.status == exitOK {
		t.Errorf("without --trigger: %+v, want an error", r)
	}
	for _, tt := range []struct{ command, want string }{
		{"change-commit", "review of changelist 1 version 1 started: in_progress\n"},
		{"change-commit", "review of changelist 1 version 1 exists already: in_progress\n"},
		{"shelve-commit", "review of shelved changelist 1 starts when the shelf has not changed for a while\n"},
	} {
		if r := in.execute(nil, "starter", "--trigger", tt.command, "1"); r.status != exitOK || r.stdout != tt.want && !lateLine.MatchString(r.stdout) || r.stderr != "" {
			t.Errorf("%s: %+v, want %q", tt.command, r, tt.want)
		}
	}
	name := "fresh-" + rand.Text()
	_, err := in.namespace.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the start of the review", func() bool { // Temporal caches namespaces
		var a startResult
		r := in.execute([]string{"CRITICIZER_TEMPORAL_NAMESPACE=" + name}, "starter", "change-commit", "--json", "1")
		return r.status == exitOK && json.Unmarshal([]byte(r.stdout), &a) == nil && !a.Spooled && a.RunID != ""
	})
}
