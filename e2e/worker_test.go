package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
)

// If a worker is stopped during a model call that outlasts its stop grace, it ends the
// attempt, and the next worker repeats it at once without a dead letter.
func TestDeployDuringModelCall(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.env = append(in.env, "CRITICIZER_WORKER_STOP_GRACE=1s")
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	stopped := time.Now()
	if err := interrupt(worker); err != nil || time.Since(stopped) > time.Minute {
		t.Errorf("worker ended with %v after %s", err, time.Since(stopped))
	}
	in.startWorker()
	in.waitForJobs(1)
	for _, event := range in.history("review-p4-1-v1", "") {
		if lost := event.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); lost != nil {
			t.Errorf("an attempt ended by timeout: %v", lost)
		}
	}
	if n := in.countRows("dead_letters", "true"); n != 0 || in.model.Stats().Calls != 2 {
		t.Errorf("%d dead letters, %d model calls", n, in.model.Stats().Calls)
	}
}

// A review without workers waits: starter --wait says so, top counts it, which Postgres does
// not know yet, and it continues when a worker starts.
func TestWaitNamesTheStagesWithoutWorker(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(binDir, "starter"), "change-commit", "--wait", "--json", "1")
	cmd.Env, cmd.Stderr = in.env, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	lines := bufio.NewScanner(reader)
	if !lines.Scan() {
		t.Fatalf("starter said nothing: %v", cmd.Wait())
	}
	if !strings.Contains(lines.Text(), "--roles workflows,fetch,redact,llm,notify, or until") {
		t.Errorf("the stages are not named: %s", lines.Text())
	}
	waitFor(t, "the review in the overview", func() bool {
		var now struct {
			Stages []struct {
				Stage   string
				Waiting int
			}
		}
		in.criticizerJSON(&now, "top")
		return now.Stages[0].Stage == "workflows" && now.Stages[0].Waiting > 0
	})
	in.startWorker()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
