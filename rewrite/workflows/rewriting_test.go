package workflows_test

import (
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
