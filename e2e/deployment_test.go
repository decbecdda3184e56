package e2e

import (
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// The rollout of docs/upgrade.md by worker deployment: a new build gets nothing
// until it is made current; then new reviews begin on it, and one that runs goes
// over to it, whose old build is gone.
func TestRolloutByWorkerDeployment(t *testing.T) {
	t.Parallel()
	r := newRig(t, newDepot(t, manyChanges(3)...))
	var taken atomic.Bool
	asked, answer := make(chan struct{}), make(chan struct{})
	block := func() {
		if taken.CompareAndSwap(false, true) { // the first call alone
			close(asked)
			<-answer
		}
	}
	r.atModel.Store(&block)
	r.startWorker("--stages", "fetch,redact,llm,notify,retention")
	old := r.startVersion("old")
	r.makeCurrent("old")
	first := r.mustStart("1")
	<-asked

	r.startVersion("new")
	waitFor(t, "the pollers of both builds", func() bool { return r.pollers(activities.QueueBookkeeping, enumspb.TASK_QUEUE_TYPE_WORKFLOW) == 2 })
	second := r.mustStart("--wait", "2")
	if got := r.buildOf(second.WorkflowID); got != "old" {
		t.Errorf("before the rollout a review ran on build %q, want the old one", got)
	}
	r.makeCurrent("new")
	third := r.mustStart("--wait", "3")
	if got := r.buildOf(third.WorkflowID); got != "new" {
		t.Errorf("after the rollout a review ran on build %q, want the new one", got)
	}
	if got := r.buildOf(first.WorkflowID); got != "old" {
		t.Errorf("the review in progress is on build %q", got)
	}
	stop(t, old)
	close(answer)
	r.waitForJobs(3)
	if got := r.buildOf(first.WorkflowID); got != "new" {
		t.Errorf("the review in progress ended on build %q, want the new one", got)
	}
	if n := r.rows("jobs", "state = 'succeeded'"); n != 3 {
		t.Errorf("%d reviews succeeded, want all 3", n)
	}
}

// startVersion runs a worker of the workflows as one build of a deployment.
func (r *rig) startVersion(build string) *exec.Cmd {
	r.t.Helper()
	plain := r.env
	defer func() { r.env = plain }()
	r.env = append(slices.Clone(plain), "CRITICIZER_WORKER_DEPLOYMENT=criticizer", "CRITICIZER_WORKER_BUILD_ID="+build)
	return r.startWorker("--stages", "workflows")
}

// makeCurrent does so with the stock command, which refuses a build that does
// not poll yet.
func (r *rig) makeCurrent(build string) {
	r.t.Helper()
	waitFor(r.t, "build "+build+" to be made current", func() bool {
		cmd := exec.CommandContext(r.t.Context(), temporalCommand(r.t), "worker", "deployment", "set-current-version",
			"--deployment-name", "criticizer", "--build-id", build, "--yes")
		cmd.Env = r.shellEnv()
		return cmd.Run() == nil
	})
}

// buildOf is the build that did the last workflow task of a review.
func (r *rig) buildOf(workflowID string) string {
	r.t.Helper()
	described, err := r.namespace.DescribeWorkflowExecution(r.t.Context(), workflowID, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return described.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

func (r *rig) pollers(queue string, kind enumspb.TaskQueueType) int {
	r.t.Helper()
	found, err := r.namespace.DescribeTaskQueue(r.t.Context(), queue, kind)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(found.GetPollers())
}

// stop ends a worker as a deployment does.
func stop(t *testing.T, worker *exec.Cmd) {
	t.Helper()
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
}

// Two workers of one stage share its queue, and each review is done once.
func TestWorkersShareTheQueues(t *testing.T) {
	t.Parallel()
	const changes = 12
	r := newRig(t, newDepot(t, manyChanges(changes)...))
	r.startWorker()
	r.startWorker()
	waitFor(t, "the pollers of both workers", func() bool { return r.pollers(activities.QueueLLM, enumspb.TASK_QUEUE_TYPE_ACTIVITY) >= 2 })
	var reviews []answer
	for n := range changes {
		reviews = append(reviews, r.mustStart(strconv.Itoa(n+1)))
	}
	r.waitForJobs(changes)
	busy := map[string]int{}
	for n, a := range reviews {
		for _, identity := range r.identities(a.WorkflowID) {
			busy[identity]++
		}
		if mails := r.mails(review.Changelist(n + 1)); len(mails) != 1 {
			t.Errorf("changelist %d: %d mails, want one", n+1, len(mails))
		}
	}
	t.Logf("activities by worker: %v", busy)
	if len(busy) != 2 {
		t.Errorf("%d workers did something, want both", len(busy))
	}
	if calls := r.model.Stats().Calls; calls != changes {
		t.Errorf("%d calls of the model for %d reviews", calls, changes)
	}
}

// identities tells which worker began each activity of a review.
func (r *rig) identities(workflowID string) []string {
	r.t.Helper()
	var all []string
	for _, event := range r.history(workflowID, "") {
		if begun := event.GetActivityTaskStartedEventAttributes(); begun != nil {
			all = append(all, begun.GetIdentity())
		}
	}
	return all
}
