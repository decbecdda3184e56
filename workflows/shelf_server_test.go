package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// The ways in which a review ends without a model call, on a real server.
func TestReviewsWithoutAModelCall(t *testing.T) {
	t.Parallel()
	ofShelf := review.Request{Changelist: 4711, Version: 2, ServerID: "p4", Key: "shelf-p4-4711-v2", Shelved: true}
	for name, tt := range map[string]struct {
		request review.Request
		is      func(c cluster)
		skipped review.SkipRule
		mails   int
	}{
		"skipped": {request, func(c cluster) {
			c.fakes.SetChange(review.Change{Number: 4711, User: "alice", SkippedBy: review.SkipRuleUser})
		}, review.SkipRuleUser, 0},
		"shelf_as_before": {ofShelf, func(c cluster) {
			onShelf(t, c.db, 4711)
			_, err := c.db.ReserveShelf(t.Context(), "p4", 4711, "the event of the same content", "run")
			testkit.NoError(t, err)
		}, review.SkipRuleSame, 0},
		"shelf_submitted": {request, func(c cluster) { onShelf(t, c.db, 4700) }, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			tt.is(c)
			var result review.Result
			testkit.NoError(t, c.start(t, tt.request).Get(t.Context(), &result))
			if result.Job.SkippedBy != tt.skipped || c.fakes.Calls("Review") != 0 || len(c.fakes.Mails()) != tt.mails {
				t.Errorf("review ended as %+v after %d model calls and %d mails", result.Job, c.fakes.Calls("Review"), len(c.fakes.Mails()))
			}
			c.keepRun(t, tt.request.Key, name)
		})
	}
}

func TestShelfOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.settle(ctx, t)
	c.keepRun(t, settling, "shelf_settled")
	testkit.NoError(t, c.GetWorkflow(ctx, settling+"-v1", "").Get(ctx, nil))
	c.keepRun(t, settling+"-v1", "shelf_reviewed")
	if c.fakes.Calls("FetchShelf") != 1 || len(c.fakes.Mails()) == 0 {
		t.Errorf("%d shelves were read and %d mails sent", c.fakes.Calls("FetchShelf"), len(c.fakes.Mails()))
	}
}

// settling is the workflow ID of a shelf that settles; those of its reviews begin
// with it.
const settling = "shelf-p4-4711"

// settle signals a shelve event of changelist 4711 and waits until its review begins.
func (c cluster) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	run, err := c.SignalWithStartWorkflow(ctx, settling, contract.ShelfSignal, nil,
		client.StartWorkflowOptions{TaskQueue: contract.QueueBookkeeping}, workflows.SettleShelf,
		contract.Shelf{ServerID: "p4", Changelist: 4711, Quiet: time.Second})
	testkit.NoError(t, err)
	testkit.NoError(t, run.Get(ctx, nil))
}

// The review of a replaced shelf ends without a mail, and the newer content is reviewed.
func TestShelfThatIsReplacedOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.fakes.Fail("Review", &failure.Error{Class: failure.ServerBusy, Err: errors.New("busy"), RetryAfter: 5 * time.Minute})
	c.settle(ctx, t)
	for c.fakes.Calls("Review") == 0 {
		if time.Sleep(20 * time.Millisecond); ctx.Err() != nil {
			t.Fatal("the model was not asked")
		}
	}
	c.settle(ctx, t)
	c.keepRun(t, settling, "shelf_settled_again")
	for version, skipped := range map[string]review.SkipRule{"-v1": review.SkipRuleNewer, "-v2": ""} {
		var result review.Result
		if err := c.GetWorkflow(ctx, settling+version, "").Get(ctx, &result); err != nil || result.Job.SkippedBy != skipped {
			t.Errorf("review %s ended as %+v, %v", version, result.Job, err)
		}
	}
	c.keepRun(t, settling+"-v1", "shelf_replaced")
	if c.db.Letters(t) != 0 || c.fakes.Copies("alice@corp.test") != 1 {
		t.Errorf("%d dead letters, %d mails to the author", c.db.Letters(t), c.fakes.Copies("alice@corp.test"))
	}
}
