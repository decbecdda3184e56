package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// Rollout by worker deployment (docs/upgrade.md): a new build gets no tasks until it is
// current. Then new reviews start on it, and a running review continues on it after the
// old build has stopped.
func TestRolloutByWorkerDeployment(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(3)...))
	var blocked atomic.Bool
	called, answer := make(chan struct{}), make(chan struct{})
	block := func() {
		if blocked.CompareAndSwap(false, true) { // only the first call
			close(called)
			<-answer
		}
	}
	in.beforeAnswer.Store(&block)
	in.startWorker("--stages", "fetch,redact,llm,notify,retention")
	old := in.startVersion("old")
	in.makeCurrent("old")
	first := in.mustStart("1")
	<-called

	in.startVersion("new")
	waitFor(t, "the pollers of both builds", func() bool { return in.pollers(activities.QueueBookkeeping, enumspb.TASK_QUEUE_TYPE_WORKFLOW) == 2 })
	second := in.mustStart("--wait", "2")
	if got := in.buildOf(second.WorkflowID); got != "old" {
		t.Errorf("before the rollout a review ran on build %q, want the old one", got)
	}
	in.makeCurrent("new")
	third := in.mustStart("--wait", "3")
	if got := in.buildOf(third.WorkflowID); got != "new" {
		t.Errorf("after the rollout a review ran on build %q, want the new one", got)
	}
	if got := in.buildOf(first.WorkflowID); got != "old" {
		t.Errorf("the review in progress is on build %q", got)
	}
	_ = interrupt(old)
	close(answer)
	in.waitForJobs(3)
	if got := in.buildOf(first.WorkflowID); got != "new" {
		t.Errorf("the review in progress ended on build %q, want the new one", got)
	}
	if n := in.countRows("jobs", "state = 'succeeded'"); n != 3 {
		t.Errorf("%d reviews succeeded, want all 3", n)
	}
}

// startVersion runs a workflow worker as one build of a deployment.
func (in *installation) startVersion(build string) *exec.Cmd {
	in.t.Helper()
	plain := in.env
	defer func() { in.env = plain }()
	in.env = append(slices.Clone(plain), "CRITICIZER_WORKER_DEPLOYMENT=criticizer", "CRITICIZER_WORKER_BUILD_ID="+build)
	return in.startWorker("--stages", "workflows")
}

// makeCurrent makes a build current with the temporal command, which rejects a build
// that does not poll yet.
func (in *installation) makeCurrent(build string) {
	in.t.Helper()
	waitFor(in.t, "build "+build+" to be made current", func() bool {
		cmd := exec.CommandContext(in.t.Context(), temporalCommand(in.t), "worker", "deployment", "set-current-version",
			"--deployment-name", "criticizer", "--build-id", build, "--yes")
		cmd.Env = in.operatorEnv()
		return cmd.Run() == nil
	})
}

// buildOf returns the build that completed the last workflow task of a review.
func (in *installation) buildOf(workflowID string) string {
	in.t.Helper()
	described, err := in.namespace.DescribeWorkflowExecution(in.t.Context(), workflowID, "")
	if err != nil {
		in.t.Fatal(err)
	}
	return described.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
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
