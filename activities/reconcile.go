package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

const (
	// reconcileGrace is older than any attempt that may still be under way: a
	// provider gives an attempt at most 20 minutes.
	reconcileGrace = 30 * time.Minute
	// reconcileBounced is after how long a mail that was sent is first looked at:
	// most that bounce have done so by then.
	reconcileBounced = 5 * time.Minute
	// reconcileWatch is for how long a mail that was sent is looked at: mail
	// servers give up, and bounce, after five days.
	reconcileWatch = 7 * 24 * time.Hour
	// reconcileRecent is for how long the absence of a mail that was never
	// confirmed means that it was not sent. Evidence may be gone later.
	reconcileRecent = 24 * time.Hour
	// reconcileRows bounds one run.
	reconcileRows = 500
	// reconcileLosses is how many mails may be lost between two runs. More, and
	// not one that is confirmed, and it is the evidence that is lost.
	reconcileLosses = 2
	// reconcileFailures by one channel are enough to know that the rest fails too.
	reconcileFailures = 3
)

// ledger is what reconciliation does with the outbox, besides delivering. Each
// change is guarded on the row as it was seen and leaves a trace in the audit
// log; if another was faster, nothing changes.
type ledger interface {
	// DueDeliveries returns rows whose last attempt's end is unknown and that
	// are older than grace, unsent rows of finished reviews, and rows sent
	// longer than bounced ago and within watch, at ever longer intervals.
	DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error)
	// NoteChecked records that the provider was asked.
	NoteChecked(ctx context.Context, id int64, confirmed bool) error
	// FailDelivery closes a row for good, also one that was marked sent.
	FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (changed bool, err error)
	// ReleaseDelivery makes a held row pending.
	ReleaseDelivery(ctx context.Context, seen review.Delivery) (changed bool, err error)
	// RequeueUnproven clears the markers of a row that was marked sent, and
	// returns its new status: pending, or held if it happens again.
	RequeueUnproven(ctx context.Context, seen review.Delivery) (review.DeliveryStatus, error)
}

// Reconciled counts what one run did.
type Reconciled struct {
	LookedAt  int `json:"looked_at"`
	Confirmed int `json:"confirmed"` // sent before, and the provider has evidence
	Settled   int `json:"settled"`   // found to have been accepted
	Sent      int `json:"sent"`      // sent now, for a review that is over
	Refused   int `json:"refused"`   // bounced, or given up
	Requeued  int `json:"requeued"`  // marked sent, or held, and not accepted
	Open      int `json:"open"`      // nothing tells yet
	// Unproven were marked sent without a record at the provider.
	Unproven int `json:"unproven"`
}

// ReconcileDeliveries brings the outbox and the provider's records together
// (review-notification 8.2, 8.3). It sends nothing itself: what is unsent is
// handed to deliver, of reviews that are over, and left to the others' notify
// stage. It may run more than once at a time.
func (n *Notifying) ReconcileDeliveries(ctx context.Context) (Reconciled, error) {
	due, err := n.Outbox.DueDeliveries(ctx, reconcileGrace, reconcileBounced, reconcileWatch, reconcileRows)
	if err != nil {
		return Reconciled{}, fmt.Errorf("find deliveries to reconcile: %w", err)
	}
	r := &reconciliation{Notifying: n, down: map[review.Channel]int{}}
	r.done.LookedAt = len(due)
	for _, d := range due {
		if r.down[d.Key.Channel()] < reconcileFailures {
			r.note(ctx, d, r.visit(ctx, d))
		}
	}
	r.judgeAbsent(ctx)
	if len(r.failed) > 0 {
		return r.done, fmt.Errorf("reconcile deliveries: %d of %d failed: %w", len(r.failed), len(due), mostHopeful(r.failed))
	}
	return r.done, nil
}

// reconciliation is one run.
type reconciliation struct {
	*Notifying
	done   Reconciled
	failed []error                // of mails: a channel that is down fails no run
	down   map[review.Channel]int // failures of each
	absent []review.DueDelivery   // marked sent of late, and the provider never had a record
}

// note keeps what became of a row. A channel that is down is no failure of the run,
// which would look like one of the mail server.
func (r *reconciliation) note(ctx context.Context, d review.DueDelivery, err error) {
	if err == nil {
		return
	}
	channel := d.Key.Channel()
	r.down[channel]++
	if channel == review.ChannelMail {
		r.failed = append(r.failed, err)
		return
	}
	r.done.Open++
	r.about(d).WarnContext(ctx, "channel cannot be reconciled", "channel", string(channel), "error", err)
}

func (r *reconciliation) visit(ctx context.Context, d review.DueDelivery) error {
	if err := r.Outbox.NoteChecked(ctx, d.ID, false); err != nil {
		return err
	}
	switch {
	case d.Status != review.DeliveryPending:
		return r.recheck(ctx, d)
	case d.JobState == review.JobSucceeded:
		return r.send(ctx, d)
	}
	settled, err := r.reconcile(ctx, d.Delivery)
	return r.count(ctx, d, either(settled, &r.done.Settled, &r.done.Open), err)
}

// recheck compares a row that is sent or held with the provider's record.
func (r *reconciliation) recheck(ctx context.Context, d review.DueDelivery) error {
	evidence, err := r.lookUp(ctx, d.Delivery)
	if err != nil {
		return err
	}
	sent := d.Status == review.DeliverySent
	switch {
	case evidence.State == review.EvidenceAccepted && sent:
		return r.count(ctx, d, &r.done.Confirmed, r.Outbox.NoteChecked(ctx, d.ID, true))
	case evidence.State == review.EvidenceAccepted:
		return r.count(ctx, d, &r.done.Settled, r.Outbox.MarkSent(ctx, d.ID, evidence.NotificationID, evidence.Source))
	case evidence.State == review.EvidenceRejected:
		return r.giveUp(ctx, d, failure.RecipientRejected)
	case evidence.State == review.EvidenceAbsent && sent:
		if evidence.Observed && !d.Confirmed && time.Since(*d.NotifiedAt) < reconcileRecent {
			r.absent = append(r.absent, d)
		}
	case evidence.State == review.EvidenceAbsent:
		changed, err := r.Outbox.ReleaseDelivery(ctx, d.Delivery)
		return r.count(ctx, d, either(changed, &r.done.Requeued, &r.done.Open), err)
	case !sent:
		r.done.Open++
	}
	return nil
}

// send delivers a row of a review that is over: requeued, or decided about by
// an operator, when no notify stage will come by any more.
func (r *reconciliation) send(ctx context.Context, d review.DueDelivery) error {
	if d.Report == "" { // finished before it was kept
		return r.expire(ctx, d)
	}
	report, _, err := r.compose(ctx, StageParams{
		Request: review.Request{Changelist: d.Key.Changelist, Version: d.Key.Version}, Input: d.Report,
	})
	if failure.ClassOf(err) == failure.ArtifactExpired {
		return r.expire(ctx, d)
	}
	if err != nil {
		return err
	}
	sent, err := r.deliver(ctx, report, d.ID)
	return r.count(ctx, d, either(sent, &r.done.Sent, &r.done.Settled), err)
}

// expire gives up a row whose report is gone, unless its mail was accepted
// after all: no row fails before it was looked up (review-notification 8.2).
func (r *reconciliation) expire(ctx context.Context, d review.DueDelivery) error {
	if d.Begun || d.NotificationID != "" {
		if settled, err := r.reconcile(ctx, d.Delivery); settled || err != nil {
			return r.count(ctx, d, &r.done.Settled, err)
		}
	}
	return r.giveUp(ctx, d, failure.ArtifactExpired)
}

func (r *reconciliation) giveUp(ctx context.Context, d review.DueDelivery, class failure.Class) error {
	changed, err := r.Outbox.FailDelivery(ctx, d.Delivery, class)
	if err != nil || !changed {
		return err
	}
	r.done.Refused++
	r.about(d).WarnContext(ctx, "delivery failed for good", "was", string(d.Status), "class", string(class))
	return nil
}

// judgeAbsent requeues what was marked sent and has no record, which is a
// breach of the order send, then mark (review-notification 8.3). Where not one
// mail has a record, the provider's records are not to be relied on.
func (r *reconciliation) judgeAbsent(ctx context.Context) {
	if len(r.absent) > reconcileLosses && r.done.Confirmed == 0 {
		r.Log.ErrorContext(ctx, "mail server has no record of any recent mail, nothing requeued: check the source of evidence",
			"deliveries", len(r.absent))
		return
	}
	for _, d := range r.absent {
		if err := r.requeue(ctx, d); err != nil {
			r.failed = append(r.failed, err)
		}
	}
}

func (r *reconciliation) requeue(ctx context.Context, d review.DueDelivery) error {
	status, err := r.Outbox.RequeueUnproven(ctx, d.Delivery)
	if err != nil || status == "" {
		return err
	}
	r.done.Unproven++
	r.about(d).ErrorContext(ctx, "delivery was marked sent and the mail server has no record of it", "now", string(status))
	if status != review.DeliveryPending || d.JobState != review.JobSucceeded {
		return nil
	}
	return r.send(ctx, d)
}

func either(ok bool, yes, no *int) *int {
	if ok {
		return yes
	}
	return no
}

// count adds to a counter what a row came to. An error that speaks of this row
// alone is counted too, and is none of the run.
func (r *reconciliation) count(ctx context.Context, d review.DueDelivery, counter *int, err error) error {
	switch failure.ClassOf(err) {
	case failure.RecipientRejected:
		r.done.Refused++
		r.about(d).WarnContext(ctx, "delivery refused")
	case failure.DeliveryAmbiguous, failure.WriteConflict:
		r.done.Open++
		r.about(d).InfoContext(ctx, "delivery left open", "error", err)
	default:
		if err != nil {
			return err
		}
		*counter++
	}
	return nil
}

func (r *reconciliation) about(d review.DueDelivery) *slog.Logger {
	return r.Log.With("changelist", int64(d.Key.Changelist), "review_version", int(d.Key.Version), "delivery", d.ID)
}
