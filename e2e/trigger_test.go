package e2e

import (
	"crypto/rand"
	"net"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/review"
)

// silentServer takes connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// A submit is neither refused nor held up because Temporal is down, and its
// review is not lost: the next call that gets through starts it.
func TestTriggerKeepsWhatTemporalCannotTake(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(3)...))
	tests := []struct{ changelist, name, address, why string }{
		{"1", "nobody listens", "127.0.0.1:1", "(temporal.address): dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"2", "nobody answers", silentServer(t), "(temporal.address) within 1.5s\n"},
	}
	for _, tt := range tests {
		begin := time.Now()
		out, err := in.run([]string{"CRITICIZER_TEMPORAL_ADDRESS=" + tt.address}, "starter", "--trigger", "change-commit", tt.changelist)
		if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "is spooled") ||
			!strings.Contains(out, tt.address) || !strings.HasSuffix(out, tt.why) {
			t.Errorf("%s: starter said %q and ended with %v", tt.name, out, err)
		}
		if d := time.Since(begin); d > 20*time.Second { // 2 s, on a machine that has time
			t.Errorf("%s: a submit was held up for %v", tt.name, d)
		}
	}
	in.startWorker()
	in.mustStart("3")
	in.waitForJobs(3)
}

func TestDrainStartsWhatWasKept(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	down := []string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}
	for range 2 { // the same change twice is one review
		if out, err := in.run(down, "starter", "change-commit", "1"); err != nil {
			t.Fatal(out, err)
		}
	}
	if out, err := in.run(down, "starter", "drain"); err == nil || !strings.Contains(out, "127.0.0.1:1 (temporal.address)") {
		t.Errorf("drain without Temporal said %q, %v", out, err)
	}
	for _, want := range []string{"started 1 spooled reviews\n", "started 0 spooled reviews\n"} {
		if out, err := in.run(nil, "starter", "drain"); err != nil || out != want {
			t.Errorf("drain said %q, %v, want %q", out, err, want)
		}
	}
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded || !a.Duplicate {
		t.Errorf("the review that was kept: %+v", a)
	}
}

// Whatever is wrong with a trigger, a submit that is done anyway does not fail.
func TestTriggerNeverFails(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.write("file", 0o600, "")
	tests := map[string]struct {
		env    []string
		args   []string
		setKey string
	}{
		"no configuration": {[]string{"CRITICIZER_CONFIG=/nowhere.yaml"}, []string{"change-commit", "1"}, "/nowhere.yaml"},
		"no changelist":    {nil, []string{"change-commit"}, "accepts 1 arg(s)"},
		"not a changelist": {nil, []string{"change-commit", "default"}, "not a positive number"},
		"no such command":  {nil, []string{"change"}, "unknown command"},
		"nowhere to keep it": {
			[]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1", "CRITICIZER_STARTER_SPOOL_DIR=" + in.path("file")},
			[]string{"change-commit", "1"}, "start it again by hand",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := in.run(tt.env, "starter", append([]string{"--trigger"}, tt.args...)...)
			if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, tt.setKey) {
				t.Errorf("said %q, %v, want one line with %q", out, err, tt.setKey)
			}
			if _, err := in.run(tt.env, "starter", tt.args...); err == nil {
				t.Error("a person was not told of the failure")
			}
		})
	}
}

// A submitter sees what a trigger prints.
func TestTriggerSaysOneLine(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(2)...))
	in.mustStart("1")
	// On a machine that is busy it may be spooled, which is one line too.
	for command, want := range map[string]string{
		"change-commit": "review of changelist 1 version 1 exists already: in_progress\n",
		"shelve-commit": "review of shelved changelist 1 starts when the shelf has not changed for a while\n",
	} {
		var output string
		waitFor(t, command+" in time", func() bool {
			var err error
			if output, err = in.run(nil, "starter", "--trigger", command, "1"); err != nil || strings.Count(output, "\n") != 1 {
				t.Errorf("%s said %q, %v, want one line", command, output, err)
			}
			return !strings.Contains(output, " within ") && !strings.Contains(output, "is spooled")
		})
		if output != want {
			t.Errorf("%s said %q, want %q", command, output, want)
		}
	}
	if out, err := in.run(nil, "starter", "change-commit", "--timeout", "1m", "2"); err != nil || !strings.Contains(out, "version 1 started: in_progress\n  workflow review-") {
		t.Errorf("said %q, %v to a person, want the workflow too", out, err)
	}
}

// The first change may come before the first worker, which tells Temporal what
// reviews can be searched by.
func TestFirstChangeBeforeTheFirstWorker(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	name := "fresh-" + rand.Text()
	_, err := in.namespace.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out string
	waitFor(t, "the review's start", func() bool { // the server is slow to know a new namespace
		out, err = in.run([]string{"CRITICIZER_TEMPORAL_NAMESPACE=" + name}, "starter", "change-commit", "1")
		return err != nil || !strings.Contains(out, "not found")
	})
	if err != nil || !strings.Contains(out, "started") {
		t.Errorf("starter said %q, %v", out, err)
	}
}

// What no trigger told of is found; what one told of is not reviewed twice; what
// is older than the installation is left alone.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	changes := manyChanges(5)
	depot := newDepot(t, changes[:2]...)
	in := newInstallation(t, depot)
	in.env = append(in.env, "CRITICIZER_P4_CATCH_UP_EVERY=1s")
	in.startWorker()
	waitFor(t, "the first mark", func() bool { return in.countRows("catch_up", "mark = 2") == 1 })
	commit(t, depot, changes[2:]...)
	in.mustStart("4")
	in.waitForJobs(3)
	waitFor(t, "the mark", func() bool { return in.countRows("catch_up", "since = 2 and mark = 5") == 1 })
	time.Sleep(3 * time.Second) // two more runs
	if n := in.countRows("jobs", "state = 'succeeded' and changelist_id in (3, 4, 5)"); n != 3 || in.countRows("jobs", "true") != 3 {
		t.Errorf("%d of 3 changes were reviewed, %d reviews in all", n, in.countRows("jobs", "true"))
	}
}
