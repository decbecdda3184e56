package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

var shelf = workflows.Shelf{ServerID: "p4", Changelist: 4711, Quiet: time.Minute}

// Of shelves that follow each other quickly the last one is reviewed, once; one
// that never settles is not put off for ever.
func TestSettleShelf(t *testing.T) {
	t.Parallel()
	every := func(d time.Duration, n int) (at []time.Duration) {
		for i := range n {
			at = append(at, time.Duration(i)*d)
		}
		return at
	}
	for name, tc := range map[string]struct {
		shelved []time.Duration // since the start
		want    time.Duration   // when the review starts
	}{
		"once":                     {every(0, 1), time.Minute},
		"twice at once":            {every(0, 2), time.Minute},
		"again before it is quiet": {[]time.Duration{0, 50 * time.Second}, 110 * time.Second},
		"without an end":           {every(45*time.Second, 30), 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			begin := b.Now()
			var started []time.Duration
			var requests []review.Request
			b.OnWorkflow(workflows.ReviewChangelist, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, req review.Request) (review.Result, error) {
				started, requests = append(started, workflow.Now(ctx).Sub(begin)), append(requests, req)
				return review.Result{}, nil
			})
			for _, at := range tc.shelved {
				b.RegisterDelayedCallback(func() { b.SignalWorkflow(workflows.ShelfSignal, nil) }, at)
			}
			b.ExecuteWorkflow(workflows.SettleShelf, shelf)
			if err := b.GetWorkflowError(); err != nil || !slices.Equal(started, []time.Duration{tc.want}) {
				t.Fatalf("started after %v, %v; want %v", started, err, tc.want)
			}
			if r := requests[0]; !r.Shelved || r.Version != 1 || r.Key != "shelf-p4-4711-v1" {
				t.Errorf("started %+v", r)
			}
		})
	}
}

// What is shelved while the review is being started gets another one.
func TestShelvedWhileTheReviewStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnWorkflow(workflows.ReviewChangelist, mock.Anything, mock.Anything).Return(func(workflow.Context, review.Request) (review.Result, error) {
		b.SignalWorkflow(workflows.ShelfSignal, nil)
		b.SignalWorkflow(workflows.ShelfSignal, nil)
		return review.Result{}, nil
	})
	b.ExecuteWorkflow(workflows.SettleShelf, shelf)
	if err := b.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Errorf("ended with %v", err)
	}
}
