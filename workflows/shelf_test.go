package workflows_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

var (
	shelf        = contract.Shelf{ServerID: "p4", Changelist: 4711, Quiet: time.Minute}
	shelfRequest = review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "shelf-p4-4711-v1", Shelved: true}
)

// Of shelve events in quick succession the last content is reviewed, once; the wait is
// bounded.
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
				b.RegisterDelayedCallback(func() { b.SignalWorkflow(contract.ShelfSignal, begin.Add(at)) }, at)
			}
			b.ExecuteWorkflow(workflows.SettleShelf, shelf)
			if err := b.GetWorkflowError(); err != nil || !slices.Equal(started, []time.Duration{tc.want}) {
				t.Fatalf("started after %v, %v; want %v", started, err, tc.want)
			}
			if r := requests[0]; !r.Shelved || r.Version != 1 || r.Key != "shelf-p4-4711-v1" || r.ShelvedAt.After(begin.Add(tc.want)) || r.ShelvedAt.Before(begin.Add(tc.want-time.Minute)) {
				t.Errorf("started %+v", r)
			}
		})
	}
}

// A shelve event during the start of the review gets a review of its own.
func TestShelvedWhileTheReviewStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnWorkflow(workflows.ReviewChangelist, mock.Anything, mock.Anything).Return(func(workflow.Context, review.Request) (review.Result, error) {
		b.SignalWorkflow(contract.ShelfSignal, nil)
		b.SignalWorkflow(contract.ShelfSignal, nil)
		return review.Result{}, nil
	})
	b.ExecuteWorkflow(workflows.SettleShelf, shelf)
	if err := b.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Errorf("ended with %v", err)
	}
}

// The review of the former content is signaled at once; it may have ended.
func TestShelvedWhileTheShelfIsReviewed(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"it goes on": nil, "it is over": errors.New("workflow execution already completed")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if _, err := b.db.ReserveShelf(t.Context(), "p4", 4711, "the event of the former content", ""); err != nil {
				t.Fatal(err)
			}
			begin := b.Now()
			var signaled, started time.Duration
			b.OnSignalExternalWorkflow(mock.Anything, shelfRequest.Key, "", "outdated", nil).Once().Return(func(string, string, string, string, any) error {
				signaled = b.Now().Sub(begin)
				return err
			})
			b.OnWorkflow(workflows.ReviewChangelist, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, _ review.Request) (review.Result, error) {
				started = workflow.Now(ctx).Sub(begin)
				return review.Result{}, nil
			})
			b.ExecuteWorkflow(workflows.SettleShelf, shelf)
			if err := b.GetWorkflowError(); err != nil || signaled >= time.Second || started != time.Minute {
				t.Errorf("signaled after %v, started after %v, %v", signaled, started, err)
			}
			b.AssertExpectations(t)
		})
	}
}

// A review whose shelf is replaced makes no more model calls and sends no mail, unless it
// is in stage notify.
func TestReviewOfAReplacedShelf(t *testing.T) {
	t.Parallel()
	busy := &failure.Error{Class: failure.ServerBusy, Err: errors.New("busy"), RetryAfter: time.Minute}
	for name, tt := range map[string]struct {
		busy    string // what the signal finds being retried
		submit  bool
		skipped review.SkipRule
		reviews int
		mails   int
	}{
		"while it is read":           {busy: "FetchShelf", skipped: review.SkipRuleNewer},
		"while the model is asked":   {busy: "Review", skipped: review.SkipRuleNewer, reviews: 1},
		"while it is mailed":         {busy: "Send", reviews: 1, mails: 2},
		"a submit is not of a shelf": {busy: "Review", submit: true, reviews: 2, mails: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.fakes.Fail(tt.busy, busy)
			b.RegisterDelayedCallback(func() { b.SignalWorkflow("outdated", nil) }, time.Minute/2)
			req := shelfRequest
			if req.Shelved = !tt.submit; req.Shelved {
				_, err := b.db.ReserveShelf(t.Context(), req.ServerID, req.Changelist, "event", "default-test-run-id")
				testkit.NoError(t, err)
			}
			b.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: req.Key})
			b.ExecuteWorkflow(workflows.ReviewChangelist, req)
			job := jobOf(t, b.db, req.Key)
			if err := b.GetWorkflowError(); err != nil || job.State != review.JobSucceeded || job.SkippedBy != tt.skipped {
				t.Errorf("ended as %+v, %v", job, err)
			}
			if n := b.fakes.Calls("Review"); n != tt.reviews || len(b.fakes.Mails()) != tt.mails || b.db.Letters(t) != 0 {
				t.Errorf("%d model calls, %d mails, %d dead letters; want %d, %d, 0", n, len(b.fakes.Mails()), b.db.Letters(t), tt.reviews, tt.mails)
			}
		})
	}
}
