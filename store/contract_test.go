package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
)

// books are the jobs and the outbox, as the activities use them.
type books interface {
	OpenJob(ctx context.Context, req review.Request, runID string) (review.Opening, error)
	FinishJob(ctx context.Context, key string, outcome review.Outcome, findings int, report review.ArtifactRef) (review.Job, error)
	SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error)
	CancelJob(ctx context.Context, key string) error
	RecordDeadLetter(ctx context.Context, req review.Request, runID string, letter failure.DeadLetter) (bool, error)
	BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error)
	PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error)
	PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error
	Delivery(ctx context.Context, id int64) (review.Delivery, error)
	BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error)
	AbandonDelivery(ctx context.Context, begun review.Delivery) error
	MarkSent(ctx context.Context, id int64, notificationID, evidence string) error
	RecordRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error
	MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error
	HoldDelivery(ctx context.Context, seen review.Delivery) error
	FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (bool, error)
	ReleaseDelivery(ctx context.Context, seen review.Delivery) (bool, error)
	RequeueUnproven(ctx context.Context, seen review.Delivery) (review.DeliveryStatus, error)
}

// The fakes of package activitiestest accept and refuse what the database does: a test with
// a fake that permits more proves nothing.
func TestFakesBehaveAsTheDatabase(t *testing.T) {
	t.Parallel()
	fake := transcript(t, activitiestest.New())
	real := transcript(t, storetest.New(t).Open(t, ""))
	for i, want := range real { // both have the same steps
		if fake[i] != want {
			t.Errorf("step %d of the fake is\n  %s, of the database\n  %s", i, fake[i], want)
		}
	}
}

// transcript lists what b answers to each call of a review's life.
func transcript(t *testing.T, b books) (steps []string) {
	t.Helper()
	ctx := t.Context()
	note := func(what string, err error, answers ...any) {
		class := failure.Class("")
		if err != nil {
			class = failure.ClassOf(err)
		}
		steps = append(steps, fmt.Sprintf("%s: %s %v", what, class, answers))
	}
	job := func(what string, j review.Job, err error) {
		if err != nil {
			j = review.Job{} // its content is not defined
		}
		note(what, err, j.State, j.Outcome, j.Findings, j.SkippedBy, j.RunID)
	}
	row := func(what string, id int64, err error) review.Delivery {
		d, errRead := b.Delivery(ctx, id)
		noError(t, errRead)
		note(what, err, d.Status, d.Begun, d.Attempts, d.NotificationID, d.Refused, d.NotifiedAt != nil, d.LastAttemptAt != nil)
		return d
	}
	open := func(req review.Request, run string) {
		o, err := b.OpenJob(ctx, req, run)
		note("open", err, o.Verdict, o.FormerRun)
		job("opened", o.Job, nil)
	}
	finish := func() {
		j, err := b.FinishJob(ctx, v1.Key, review.OutcomeFindings, 2, "report:1")
		job("finish", j, err)
	}
	now := time.Now().UTC()
	letter := failure.DeadLetter{ErrorClass: failure.AuthDenied, Stage: "llm", FirstFailureAt: now, LastFailureAt: now, SanitizedContext: map[string]string{}}
	bury := func(run string) {
		escalated, err := b.RecordDeadLetter(ctx, v1, run, letter)
		note("dead letter of "+run, err, escalated)
		open(v1, run)
	}

	open(v1, "run1")
	bury("run1")
	bury("run1") // changes nothing
	for range 2 {
		j, err := b.BeginReplay(ctx, v1, review.Replay{DeadRunID: "run1", NewRunID: "run2"})
		job("replay", j, err)
	}
	bury("run2") // escalated
	j, err := b.BeginReplay(ctx, v1, review.Replay{DeadRunID: "run2", NewRunID: "run3"})
	job("replay", j, err)

	noError(t, b.PrepareChannels(ctx, 4711, 1, []review.Channel{review.ChannelWebhook}))
	rows, err := b.PrepareDeliveries(ctx, 4711, 1, []string{"Ann@corp.test", "ann@corp.test", "bob@corp.test"})
	noError(t, err)
	slices.SortFunc(rows, func(a, b review.Delivery) int {
		return slices.Compare([]byte(a.Key.Recipient), []byte(b.Key.Recipient))
	})
	var ids []int64
	for _, r := range rows {
		ids = append(ids, r.ID)
		note("row", nil, r.Key.Recipient, r.Key.Channel(), r.Status)
	}
	ann, bob, hook := ids[0], ids[1], ids[2]
	finish() // three recipients are not notified

	unread := row("new", ann, nil)
	row("failed before an attempt", ann, b.MarkDeliveryFailed(ctx, unread, failure.RecipientRejected))
	row("held before an attempt", ann, b.HoldDelivery(ctx, unread))
	begun, err := b.BeginDelivery(ctx, unread)
	row("begun", ann, err)
	_, err = b.BeginDelivery(ctx, unread)
	row("begun by a worker that read before", ann, err)
	row("abandoned by it", ann, b.AbandonDelivery(ctx, unread))
	row("failed by it", ann, b.MarkDeliveryFailed(ctx, unread, failure.RecipientRejected))
	row("held by it", ann, b.HoldDelivery(ctx, unread))
	row("refused, as it says", ann, b.RecordRefusal(ctx, unread, failure.TooLarge))
	row("refused as a whole", ann, b.RecordRefusal(ctx, begun, failure.TooLarge))
	row("abandoned", ann, b.AbandonDelivery(ctx, begun))
	begun, err = b.BeginDelivery(ctx, begun)
	row("begun again", ann, err)
	row("sent", ann, b.MarkSent(ctx, ann, "m1", "accepted"))
	row("marked again", ann, b.MarkSent(ctx, ann, "m1", "accepted"))
	row("marked as another message", ann, b.MarkSent(ctx, ann, "m2", "accepted"))
	row("failed after all", ann, b.MarkDeliveryFailed(ctx, begun, failure.RecipientRejected))
	row("abandoned after all", ann, b.AbandonDelivery(ctx, begun))

	begun, err = b.BeginDelivery(ctx, row("new", bob, nil))
	note("begin", err, begun.Attempts)
	row("held", bob, b.HoldDelivery(ctx, begun))
	row("held again", bob, b.HoldDelivery(ctx, begun))
	_, err = b.BeginDelivery(ctx, begun)
	row("begun while held", bob, err)
	changed, err := b.ReleaseDelivery(ctx, begun)
	row(fmt.Sprintf("released %t", changed), bob, err)
	changed, err = b.ReleaseDelivery(ctx, begun)
	row(fmt.Sprintf("released again %t", changed), bob, err)
	row("failed", bob, b.MarkDeliveryFailed(ctx, begun, failure.RecipientRejected))
	row("sent all the same", bob, b.MarkSent(ctx, bob, "m3", "journal"))
	finish() // the webhook is not notified
	row("sent", hook, b.MarkSent(ctx, hook, "w1", "accepted"))

	seen := row("sent", bob, nil)
	status, err := b.RequeueUnproven(ctx, seen)
	row("unproven while its review runs: "+string(status), bob, err)
	changed, err = b.FailDelivery(ctx, seen, failure.RecipientRejected)
	row(fmt.Sprintf("bounced while its review runs %t", changed), bob, err)
	finish()
	finish() // changes nothing
	for range 2 {
		status, err = b.RequeueUnproven(ctx, seen)
		row("unproven: "+string(status), bob, err)
		row("sent", bob, b.MarkSent(ctx, bob, "m4", "accepted"))
		seen = row("read", bob, nil)
	}
	changed, err = b.FailDelivery(ctx, seen, failure.RecipientRejected)
	row(fmt.Sprintf("bounced %t", changed), bob, err)

	// What has succeeded stays so.
	j, err = b.SkipJob(ctx, v1.Key, review.SkipRuleUser)
	job("skip", j, err)
	note("cancel", b.CancelJob(ctx, v1.Key))
	bury("run3")
	j, err = b.BeginReplay(ctx, v1, review.Replay{DeadRunID: "run3", NewRunID: "run4"})
	job("replay", j, err)
	open(v1, "run4")
	open(version(2), "run5")
	return steps
}
