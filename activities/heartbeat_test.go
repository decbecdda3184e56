package activities

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestHeartbeatsShowProgress(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	var sent []progress
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p progress
		if err := details.Get(&p); err != nil {
			t.Error(err)
		}
		sent = append(sent, p)
	})
	review := func(ctx context.Context) error {
		showProgress(context.WithValue(ctx, heartbeatKey{}, &heartbeater{}), 2, 5)
		showProgress(ctx, 3, 5) // ignored: the activity has no heartbeats
		return nil
	}
	env.RegisterActivity(review)
	if _, err := env.ExecuteActivity(review); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 1 || sent[0].Done != 2 || sent[0].Total != 5 {
		t.Errorf("sent %+v, want 2 of 5", sent)
	}
}

// Each heartbeat costs the server a write, so short attempts send none.
func TestOnlyLongAttemptsHeartbeat(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&Interceptor{}}})
	beats := make(chan string, 100)
	env.SetOnActivityHeartbeatListener(func(info *activity.Info, _ converter.EncodedValues) { beats <- info.ActivityID })
	long := func(ctx context.Context) error {
		select {
		case <-beats:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	short := func(context.Context) error { return nil }
	env.RegisterActivityWithOptions(long, activity.RegisterOptions{Name: "long"})
	env.RegisterActivityWithOptions(short, activity.RegisterOptions{Name: "short"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		within := func(heartbeat time.Duration) workflow.Context {
			return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeat})
		}
		if err := workflow.ExecuteActivity(within(15*time.Second), "short").Get(ctx, nil); err != nil {
			return err
		}
		if n := len(beats); n != 0 {
			t.Errorf("an attempt that was over at once made %d heartbeats", n)
		}
		return workflow.ExecuteActivity(within(3*time.Second), "long").Get(ctx, nil)
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
