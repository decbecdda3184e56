package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// acts are the fakes of activities, by name.
type acts map[string]any

// serve runs a worker of one task queue.
func (c cluster) serve(t *testing.T, taskQueue string, register func(worker.Registry), fakes acts) {
	t.Helper()
	w := worker.New(c.Client, taskQueue, worker.Options{})
	register(w)
	for name, fake := range fakes {
		w.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	testkit.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// Searches without a new changelist, with missing reviews, and with more than one listing,
// on a real server.
func TestCatchUpRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listings []activities.Listing
		started  int
	}{
		"caught_up_nothing": {[]activities.Listing{{UpTo: 900}}, 0},
		"caught_up": {[]activities.Listing{
			{UpTo: 903, Changelists: []review.Changelist{901, 902, 903}},
			{UpTo: 905, Changelists: []review.Changelist{905}},
			{UpTo: 905},
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, where := temporaltest.New(t, contract.Attributes()...)
			c := cluster{Client: n.Client, namespace: where.Name}
			c.serve(t, contract.QueueFetch, func(worker.Registry) {}, acts{
				"ListSubmitted": func(context.Context, activities.SearchStart) (activities.Listing, error) {
					next := tt.listings[0]
					tt.listings = tt.listings[1:]
					return next, nil
				},
			})
			c.serve(t, contract.QueueBookkeeping, func(w worker.Registry) {
				w.RegisterWorkflow(workflows.CatchUp)
				w.RegisterWorkflowWithOptions(func(workflow.Context, review.Request) (review.Result, error) { return review.Result{}, nil },
					workflow.RegisterOptions{Name: "ReviewChangelist"})
			}, acts{
				"FindMark": func(context.Context, string) (activities.SearchStart, error) {
					return activities.SearchStart{After: 900}, nil
				},
				"WithoutReview": func(_ context.Context, cls []review.Changelist) ([]review.Changelist, error) {
					return cls[:min(2, len(cls))], nil
				},
				"RaiseMark": func(context.Context, activities.MarkParams) error { return nil },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: name, TaskQueue: contract.QueueBookkeeping}, workflows.CatchUp, "p4")
			testkit.NoError(t, err)
			var done workflows.CaughtUp
			testkit.NoError(t, run.Get(ctx, &done))
			if done.Started != tt.started {
				t.Errorf("%d reviews were started, want %d", done.Started, tt.started)
			}
			c.keepRun(t, name, name)
		})
	}
}
