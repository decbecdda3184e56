package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

const (
	// reconcileGrace is longer than any running attempt: a provider gives an attempt at
	// most 20 minutes.
	reconcileGrace = 30 * time.Minute
	// reconcileBounced is the age of a sent mail at its first look-up: most bounces
	// arrive before.
	reconcileBounced = 5 * time.Minute
	// reconcileWatch is the age up to which a sent mail is looked up at least daily: mail
	// servers give up, and bounce, after five days.
	reconcileWatch = 7 * 24 * time.Hour
	// reconcileRows limits one run.
	reconcileRows = 500
	// reconcileLosses is how many mails may have no record at a time, over all runs. If more
	// have none, the evidence is missing, not the mails.
	reconcileLosses = 2
	// reconcileFailures of one channel end its look-ups in this run.
	reconcileFailures = 3
)

// Reconciled counts what a run of [Notifier.ReconcileDeliveries] did.
type Reconciled struct {
	Checked   int `json:"checked"`
	Confirmed int `json:"confirmed"` // sent, and the provider has a record
	Settled   int `json:"settled"`   // of unknown result, and was accepted
	Sent      int `json:"sent"`      // sent now, for a finished review
	Refused   int `json:"refused"`   // bounced, or given up
	Requeued  int `json:"requeued"`  // held, and was not accepted
	Open      int `json:"open"`      // no evidence yet
	// Unproven were marked sent, and the provider has no record.
	Unproven int `json:"unproven"`
	// Answers are readers' opinions on findings that were recorded.
	Answers int `json:"answers"`
	// Missing are too many to be lost: nothing was sent again, the evidence needs a check.
	Missing int `json:"missing,omitempty"`
	// Notices are mails to authors whose reviews wait for an operator.
	Notices int `json:"notices,omitempty"`
}

// ReconcileDeliveries compares the outbox with the provider's records (notification 8.2,
// 8.3). It sends unsent rows of finished reviews only; stage notify sends the others.
// Several runs may overlap.
func (n *Notifier) ReconcileDeliveries(ctx context.Context) (Reconciled, error) {
	due, err := n.Outbox.DueDeliveries(ctx, reconcileGrace, reconcileBounced, reconcileWatch, reconcileRows)
	if err != nil {
		return Reconciled{}, fmt.Errorf("find deliveries to reconcile: %w", err)
	}
	r := &reconciliation{Notifier: n, down: map[review.Channel]int{}}
	r.done.Checked = len(due)
	for _, d := range due {
		channel := d.Key.Channel()
		if r.down[channel] >= reconcileFailures {
			continue
		}
		err := r.visit(ctx, d)
		if err == nil {
			continue
		}
		if _, own := errors.AsType[reportError](err); !own {
			r.down[channel]++
		}
		if channel == review.ChannelMail {
			r.failed = append(r.failed, err)
			continue
		}
		// A failed run would look like a failure of the mail server.
		r.done.Open++
		r.log(d).WarnContext(ctx, "channel not reconciled", "channel", string(channel), "error", err)
	}
	r.requeueAbsent(ctx)
	for _, more := range []func(context.Context) error{r.sendNotices, r.recordAnswers} {
		if err := more(ctx); err != nil {
			r.failed = append(r.failed, err)
		}
	}
	if len(r.failed) > 0 {
		return r.done, fmt.Errorf("reconcile deliveries: %d of %d failed: %w", len(r.failed), len(due), mostRetryable(r.failed))
	}
	return r.done, nil
}

// recordAnswers reads what readers say about findings.
func (r *reconciliation) recordAnswers(ctx context.Context) error {
	if r.Answers == nil {
		return nil
	}
	mails, err := r.Notifier.Answers.Feedback(ctx)
	for _, m := range mails {
		recorded, errRecord := r.Outbox.RecordFeedback(ctx, m)
		if err = errors.Join(err, errRecord); recorded {
			r.done.Answers++
		}
	}
	return err
}

// reconciliation is the state of one run.
type reconciliation struct {
	*Notifier
	done   Reconciled
	failed []error                // of mails
	down   map[review.Channel]int // failures by channel
	absent []review.DueDelivery   // recently marked sent, without a record at the provider
}

// A reportError is the error of one row's report. It shows nothing about the channel.
type reportError struct{ error }

func (e reportError) Unwrap() error { return e.error }

func (r *reconciliation) visit(ctx context.Context, d review.DueDelivery) error {
	if err := r.Outbox.RecordCheck(ctx, d.ID, false); err != nil {
		return err
	}
	switch {
	case d.Status != review.DeliveryPending:
		return r.recheck(ctx, d)
	case d.JobState == review.JobSucceeded:
		return r.send(ctx, d)
	}
	settled, err := r.settle(ctx, &d.Delivery)
	return r.count(ctx, d, pick(settled, &r.done.Settled, &r.done.Open), err)
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
		return r.count(ctx, d, &r.done.Confirmed, r.Outbox.RecordCheck(ctx, d.ID, true))
	case evidence.State == review.EvidenceAccepted:
		return r.count(ctx, d, &r.done.Settled, r.Outbox.MarkSent(ctx, d.ID, evidence.NotificationID, evidence.Source))
	case evidence.State == review.EvidenceRejected:
		return r.giveUp(ctx, d, bounceClass(evidence))
	case sent && d.Confirmed: // evidence expires
	case sent && evidence.State == review.EvidenceAbsent && evidence.Observed:
		r.absent = append(r.absent, d)
	case sent && d.Evidence == "" && evidence.AskAgain.IsZero():
		return r.unproven(ctx, d, true) // no provider has ever confirmed it, and no source can tell
	case sent:
	case evidence.State == review.EvidenceAbsent:
		changed, err := r.Outbox.ReleaseDelivery(ctx, d.Delivery)
		return r.count(ctx, d, pick(changed, &r.done.Requeued, &r.done.Open), err)
	default:
		r.done.Open++
	}
	return nil
}

// send delivers a row of a finished review, whose stage notify does not run again: the
// row was requeued, or an operator decided to send it. If its report has expired, the row is
// given up, unless its mail was accepted: no row fails without a look-up (notification 8.2).
func (r *reconciliation) send(ctx context.Context, d review.DueDelivery) error {
	report, chosen, err := r.compose(ctx, StageParams{
		Request: review.Request{Changelist: d.Key.Changelist, Version: d.Key.Version, OnlyNew: d.OnlyNew}, Input: d.Report,
	})
	switch {
	case failure.ClassOf(err) == failure.ArtifactExpired:
		if d.Begun || d.NotificationID != "" {
			if settled, err := r.settle(ctx, &d.Delivery); settled || err != nil {
				return r.count(ctx, d, &r.done.Settled, err)
			}
		}
		return r.giveUp(ctx, d, failure.ArtifactExpired)
	case err != nil:
		return reportError{err}
	}
	sent, err := r.deliver(ctx, report, chosen.roles, d.ID)
	return r.count(ctx, d, pick(sent, &r.done.Sent, &r.done.Settled), err)
}

func (r *reconciliation) giveUp(ctx context.Context, d review.DueDelivery, class failure.Class) error {
	changed, err := r.Outbox.FailDelivery(ctx, d.Delivery, class)
	if err != nil || !changed {
		return err
	}
	r.done.Refused++
	r.log(d).WarnContext(ctx, "delivery failed permanently", "was", string(d.Status), "class", string(class))
	return nil
}

// requeueAbsent requeues rows that are marked sent and have no record, which violates the
// order send, then mark (notification 8.3). If many have none, the provider's records are not
// trusted: nothing is sent again, and the rows are checked again until an operator has repaired
// the source. Rows that earlier runs requeued count until a source has their mails.
func (r *reconciliation) requeueAbsent(ctx context.Context) {
	if len(r.absent) == 0 {
		return
	}
	var ids []int64
	for _, d := range r.absent {
		ids = append(ids, d.ID)
	}
	missing, err := r.Outbox.RecordMissing(ctx, ids)
	if err != nil {
		r.failed = append(r.failed, err)
		return
	}
	if missing > reconcileLosses {
		r.done.Missing = missing
		r.Log.ErrorContext(ctx, "many sent mails have no record, nothing is sent again: check the source of evidence", "deliveries", missing)
		return
	}
	for _, d := range r.absent {
		if err := r.unproven(ctx, d, false); err != nil {
			r.failed = append(r.failed, err)
		}
	}
}

// unproven clears the marks of a row without evidence, and sends it again, or holds it.
func (r *reconciliation) unproven(ctx context.Context, d review.DueDelivery, hold bool) error {
	status, err := r.Outbox.RequeueUnproven(ctx, d.Delivery, hold)
	if err != nil || status == "" {
		return err
	}
	r.done.Unproven++
	r.log(d).ErrorContext(ctx, "delivery is marked sent and there is no evidence of it", "now", string(status))
	if status == review.DeliveryPending && d.JobState == review.JobSucceeded {
		return r.send(ctx, d)
	}
	return nil
}

// pick returns the counter of a row: yes if ok, else no.
func pick(ok bool, yes, no *int) *int {
	if ok {
		return yes
	}
	return no
}

// count adds the row to a counter. An error that concerns this row alone is counted too,
// and is not returned.
func (r *reconciliation) count(ctx context.Context, d review.DueDelivery, counter *int, err error) error {
	switch failure.ClassOf(err) {
	case failure.RecipientRejected:
		r.done.Refused++
		r.log(d).WarnContext(ctx, "delivery refused")
	case failure.DeliveryAmbiguous, failure.WriteConflict:
		r.done.Open++
		r.log(d).InfoContext(ctx, "delivery left open", "error", err)
	default:
		if err != nil {
			return err
		}
		*counter++
	}
	return nil
}

func (r *reconciliation) log(d review.DueDelivery) *slog.Logger {
	return r.Log.With("changelist", int64(d.Key.Changelist), "review_version", int(d.Key.Version), "delivery", d.ID)
}
