package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// If a worker dies during a long activity, Temporal notices it by the missing
// heartbeat, long before the activity's own timeout of an hour (processing 8.2). The
// lost attempt is the first failure of the stage (processing 8.4).
func TestHeartbeatDetectsWorkerDeath(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1}, llmsim.Fault{Kind: llmsim.Unavailable})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls == 1 })
	kill(worker)
	died := time.Now()
	in.startWorker()
	waitFor(t, "the second attempt", func() bool { return in.model.Stats().Calls == 2 })
	noticed := time.Since(died)
	t.Logf("second attempt after %s", noticed)
	if noticed > 5*time.Minute {
		t.Errorf("second attempt after %s, want the heartbeat timeout of 15 s and a retry, not the activity's timeout", noticed)
	}
	in.waitForJobs(1)
	var first, last time.Time
	in.queryRow("select first_failure_at, last_failure_at from criticizer.dead_letters", &first, &last)
	if first.Before(died) || first.After(died.Add(noticed+time.Second)) || !last.After(first) {
		t.Errorf("first failure %s after the death, last %s; want the first when it was noticed", first.Sub(died), last.Sub(died))
	}
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d model calls, want %d: the lost attempt counts", calls, failure.AttemptBudget)
	}
}

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

func (in *installation) pollers(queue string, kind enumspb.TaskQueueType) int {
	in.t.Helper()
	found, err := in.namespace.DescribeTaskQueue(in.t.Context(), queue, kind)
	if err != nil {
		in.t.Fatal(err)
	}
	return len(found.GetPollers())
}

// Two workers of one stage share its queue, and each change is reviewed once.
func TestWorkersShareTheQueues(t *testing.T) {
	t.Parallel()
	const changes = 12
	in := newInstallation(t, newDepot(t, manyChanges(changes)...))
	in.startWorker()
	in.startWorker()
	waitFor(t, "the pollers of both workers", func() bool { return in.pollers(activities.QueueLLM, enumspb.TASK_QUEUE_TYPE_ACTIVITY) >= 2 })
	var reviews []startResult
	for n := range changes {
		reviews = append(reviews, in.mustStart(strconv.Itoa(n+1)))
	}
	in.waitForJobs(changes)
	busy := map[string]int{}
	for n, a := range reviews {
		for _, identity := range in.identities(a.WorkflowID) {
			busy[identity]++
		}
		if mails := in.mails(review.Changelist(n + 1)); len(mails) != 1 {
			t.Errorf("changelist %d: %d mails, want one", n+1, len(mails))
		}
	}
	t.Logf("activities by worker: %v", busy)
	if len(busy) != 2 {
		t.Errorf("%d workers ran activities, want both", len(busy))
	}
	if calls := in.model.Stats().Calls; calls != changes {
		t.Errorf("%d model calls for %d reviews", calls, changes)
	}
}

// identities lists the worker of each activity of a review.
func (in *installation) identities(workflowID string) []string {
	in.t.Helper()
	var all []string
	for _, event := range in.history(workflowID, "") {
		if begun := event.GetActivityTaskStartedEventAttributes(); begun != nil {
			all = append(all, begun.GetIdentity())
		}
	}
	return all
}

// A review without workers waits: starter --wait says so, and continues when one starts.
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
	if !strings.HasSuffix(lines.Text(), "--stages workflows,fetch,redact,llm,notify") {
		t.Errorf("the stages are not named: %s", lines.Text())
	}
	in.startWorker()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
