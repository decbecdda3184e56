package workflows_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	activities "github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/store"
	workflows "github.com/criticizer/criticizer/rewrite/workflows"
)

var a *activities.Activities

// Each worker looks for work first, does its own, and records the run; also one
// that failed.
func TestRun(t *testing.T) {
	t.Parallel()
	steps := map[rewrite.Worker]string{
		rewrite.Submitter: "SubmitBatches", rewrite.Collector: "CollectBatches", rewrite.AsyncLane: "ExecuteJobs",
	}
	for _, worker := range rewrite.Workers() {
		for name, tt := range map[string]struct {
			pending bool
			failure error
			want    []string
		}{
			"nothing pending": {false, nil, []string{"BeginRun"}},
			"work":            {true, nil, []string{"BeginRun", steps[worker], "FinishRun"}},
			"work that fails": {true, temporal.NewNonRetryableApplicationError("no", "UNKNOWN", nil), []string{"BeginRun", steps[worker], "FinishRun"}},
		} {
			t.Run(string(worker)+", "+name, func(t *testing.T) {
				t.Parallel()
				var suite testsuite.WorkflowTestSuite
				env := suite.NewTestWorkflowEnvironment()
				workflows.Register(env)
				env.RegisterActivity(a)
				var did []string
				note := func(step string) func(mock.Arguments) {
					return func(mock.Arguments) { did = append(did, step) }
				}
				env.OnActivity("BeginRun", mock.Anything, worker).Run(note("BeginRun")).Return(tt.pending, nil)
				env.OnActivity(steps[worker], mock.Anything).Run(note(steps[worker])).Return(tt.failure)
				env.OnActivity("FinishRun", mock.Anything).Run(note("FinishRun")).Return(store.Run{Worker: worker, ClaimedCount: 3}, nil)
				env.ExecuteWorkflow(string(worker))
				if !slices.Equal(did, tt.want) {
					t.Errorf("did %v, want %v", did, tt.want)
				}
				var failed *temporal.ApplicationError
				if err := env.GetWorkflowError(); errors.As(err, &failed) != (tt.failure != nil) {
					t.Fatalf("workflow ended with %v", err)
				}
				var run store.Run
				if tt.failure != nil {
					return
				}
				if err := env.GetWorkflowResult(&run); err != nil {
					t.Fatal(err)
				}
				if skipped := run.Event == string(worker)+" skipped: no pending items"; skipped == tt.pending || tt.pending != (run.ClaimedCount == 3) {
					t.Errorf("run is %+v", run)
				}
			})
		}
	}
}

// Failures that Temporal declares itself are retried, too.
func TestLostAttemptsAreRetried(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	workflows.Register(env)
	env.RegisterActivity(a)
	var begun []time.Time
	note := func(mock.Arguments) { begun = append(begun, env.Now()) }
	env.OnActivity("BeginRun", mock.Anything, mock.Anything).Return(true, nil)
	env.OnActivity("SubmitBatches", mock.Anything).Run(note).Return(temporal.NewHeartbeatTimeoutError()).Times(7)
	env.OnActivity("SubmitBatches", mock.Anything).Run(note).Return(nil)
	env.OnActivity("FinishRun", mock.Anything).Return(store.Run{}, nil)
	env.ExecuteWorkflow(string(rewrite.Submitter))
	if err := env.GetWorkflowError(); err != nil || len(begun) != 8 {
		t.Fatalf("ended with %v after %d attempts", err, len(begun))
	}
	for i, at := range begun[1:] {
		want := min(failure.InitialDelay<<i, failure.MaxDelay)
		if got := at.Sub(begun[i]); (got - want).Abs() > time.Microsecond {
			t.Errorf("waited %s after attempt %d, want %s", got, i+1, want)
		}
	}
}
