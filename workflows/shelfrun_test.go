package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// The ways in which a review ends without a call of the model, on a real server.
func TestReviewsThatAskNobody(t *testing.T) {
	t.Parallel()
	ofShelf := review.Request{Changelist: 4711, Version: 2, ServerID: "p4", Key: "shelf-p4-4711-v2", Shelved: true}
	for name, tt := range map[string]struct {
		request review.Request
		is      func(c cluster)
		skipped review.SkipRule
		mails   int
	}{
		"skipped": {request, func(c cluster) {
			c.world.SetChange(review.Change{Number: 4711, User: "alice", SkippedBy: review.SkipRuleUser})
		}, review.SkipRuleUser, 0},
		"shelf_as_before": {ofShelf, func(c cluster) { onShelf(c.world) }, review.SkipRuleSame, 0},
		"shelf_submitted": {request, func(c cluster) { onShelf(c.world) }, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			tt.is(c)
			var result review.Result
			if err := c.start(t, tt.request).Get(t.Context(), &result); err != nil {
				t.Fatal(err)
			}
			if result.Job.SkippedBy != tt.skipped || c.world.Calls("Review") != 0 || len(c.world.Mails()) != tt.mails {
				t.Errorf("review ended as %+v after %d model calls and %d mails", result.Job, c.world.Calls("Review"), len(c.world.Mails()))
			}
			c.keepRun(t, tt.request.Key, name)
		})
	}
}

// A shelf settles, and is reviewed, on a real server.
func TestShelfOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	settling := workflows.Shelf{ServerID: "p4", Changelist: 4711, Quiet: time.Second}
	const id = "shelf-p4-4711"
	run, err := c.SignalWithStartWorkflow(t.Context(), id, workflows.ShelfSignal, nil,
		client.StartWorkflowOptions{TaskQueue: activities.QueueBookkeeping}, workflows.SettleShelf, settling)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	c.keepRun(t, id, "shelf_settled")
	if err := c.GetWorkflow(ctx, id+"-v1", "").Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	c.keepRun(t, id+"-v1", "shelf_reviewed")
	if c.world.Calls("FetchShelf") != 1 || len(c.world.Mails()) == 0 {
		t.Errorf("%d shelves were read and %d mails sent", c.world.Calls("FetchShelf"), len(c.world.Mails()))
	}
}
