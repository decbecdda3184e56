package temporal_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A server with unequal partitions applies a fraction of a rate limit; see docs/deploy/temporal.yaml.
func TestConfiguredRateIsReached(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rate float64
		api  bool // an operator sets the rate, not the workers
	}{"4 per second, by workers": {4, false}, "4 per second, by an operator": {4, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, where := temporaltest.New(t)
			var mu sync.Mutex
			var begun []time.Time
			options := worker.Options{DisableWorkflowWorker: true}
			if tt.api {
				// As temporal task-queue config set does.
				_, err := n.WorkflowService().UpdateTaskQueueConfig(t.Context(), &workflowservice.UpdateTaskQueueConfigRequest{
					Namespace: where.Name, TaskQueue: "ticks", TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
					UpdateQueueRateLimit: &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{
						RateLimit: &taskqueuepb.RateLimit{RequestsPerSecond: float32(tt.rate)},
					},
				})
				testkit.NoError(t, err)
			} else {
				options.TaskQueueActivitiesPerSecond = tt.rate
			}
			ticks, steps := worker.New(n.Client, "ticks", options), worker.New(n.Client, "steps", worker.Options{})
			ticks.RegisterActivityWithOptions(func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, time.Now())
				return nil
			}, activity.RegisterOptions{Name: "Tick"})
			steps.RegisterWorkflowWithOptions(tick, workflow.RegisterOptions{Name: "Ticks"})
			for _, w := range []worker.Worker{ticks, steps} {
				testkit.NoError(t, w.Start())
				t.Cleanup(w.Stop)
			}
			// A slow machine lowers the rate for a while, an unequal server for good.
			for attempt := 1; ; attempt++ {
				mu.Lock()
				begun = nil
				mu.Unlock()
				run, err := n.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "steps"}, "Ticks", int(12*tt.rate))
				testkit.NoError(t, err)
				testkit.NoError(t, run.Get(t.Context(), nil))
				// The limiter lets the tasks of the first second begin at once.
				mu.Lock()
				counted := begun[int(2*tt.rate):]
				mu.Unlock()
				got := float64(len(counted)-1) / counted[len(counted)-1].Sub(counted[0]).Seconds()
				t.Logf("%g per second configured, %.2f reached", tt.rate, got)
				if math.Abs(got-tt.rate) <= tt.rate/5 { // it is a quarter, if one of four partitions is written to
					return
				}
				if attempt == 5 {
					t.Fatalf("%.2f activities per second, want %g: are numTaskqueueReadPartitions and numTaskqueueWritePartitions equal?", got, tt.rate)
				}
			}
		})
	}
}

// tick runs activities on the limited queue, all at once.
func tick(ctx workflow.Context, count int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "ticks", StartToCloseTimeout: time.Minute})
	running := make([]workflow.Future, count)
	for i := range running {
		running[i] = workflow.ExecuteActivity(ctx, "Tick")
	}
	for i, f := range running {
		if err := f.Get(ctx, nil); err != nil {
			return fmt.Errorf("tick %d: %w", i, err)
		}
	}
	return nil
}
