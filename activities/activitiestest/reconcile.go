package activitiestest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A check is what reconciliation recorded of an outbox row.
type check struct {
	checked, confirmed bool
	unproven           int
}

// Backdate makes all attempts and mails older by d, and due again.
func (w *World) Backdate(d time.Duration) {
	w.set(func() {
		for i := range w.rows {
			for _, at := range []**time.Time{&w.rows[i].LastAttemptAt, &w.rows[i].NotifiedAt} {
				if *at != nil {
					earlier := (*at).Add(-d)
					*at = &earlier
				}
			}
			w.checkOf(w.rows[i].ID).checked = false
		}
	})
}

// Finish ends the job with any rows: an operator can requeue one of a finished review.
func (w *World) Finish(report review.ArtifactRef) {
	w.set(func() {
		w.job.State, w.job.Outcome, w.job.Findings, w.report = review.JobSucceeded, review.OutcomeFindings, 1, report
	})
}

// Lose deletes the mail server's record of the recipient's mails.
func (w *World) Lose(address string) {
	w.set(func() {
		maps.DeleteFunc(w.mailed, func(_ string, sent []string) bool { return sent[0] == address })
	})
}

// Rows returns the outbox.
func (w *World) Rows() []review.Delivery {
	return get(w, func() []review.Delivery { return slices.Clone(w.rows) })
}

// SetEarlier makes the review a rerun of version v.
func (w *World) SetEarlier(v review.Version, report review.ArtifactRef) {
	w.set(func() { w.earlier = review.Prior{Changelist: w.change.Number, Version: v, Report: report} })
}

// EarlierReport returns what [World.SetEarlier] set.
func (w *World) EarlierReport(context.Context, review.Changelist, review.Version) (prior review.Prior, err error) {
	err = w.call("EarlierReport", func() { prior = w.earlier })
	return prior, err
}

// DueDeliveries returns rows with an attempt of unknown result, unsent rows of a finished
// job, then rows of a job that has ended which are sent and were not checked since
// [World.Backdate].
func (w *World) DueDeliveries(_ context.Context, grace, bounced, watch time.Duration, limit int) (due []review.DueDelivery, err error) {
	err = w.call("DueDeliveries", func() {
		for _, row := range w.rows {
			if w.isOpen(row, grace) || w.awaitsCheck(row, bounced, watch) {
				due = append(due, review.DueDelivery{
					Delivery: row, JobState: w.job.State, Report: w.report, Confirmed: w.checkOf(row.ID).confirmed,
				})
			}
		}
	})
	slices.SortStableFunc(due, func(a, b review.DueDelivery) int {
		return rank(a.Delivery.Status == review.DeliverySent) - rank(b.Delivery.Status == review.DeliverySent)
	})
	return due[:min(len(due), limit)], err
}

// isOpen reports whether the row is unsent, and no attempt may be at work on it.
func (w *World) isOpen(row review.Delivery, grace time.Duration) bool {
	switch row.Status {
	case review.DeliveryPending, review.DeliveryHeld:
		if (row.Begun || row.NotificationID != "") && (row.LastAttemptAt == nil || time.Since(*row.LastAttemptAt) >= grace) {
			return true
		}
		return !row.Begun && row.Status == review.DeliveryPending && w.job.State == review.JobSucceeded
	}
	return false
}

// awaitsCheck reports whether the row was sent that long ago and not checked since.
func (w *World) awaitsCheck(row review.Delivery, bounced, watch time.Duration) bool {
	if row.NotifiedAt == nil || w.job.State == review.JobInProgress || w.checkOf(row.ID).checked {
		return false
	}
	age := time.Since(*row.NotifiedAt)
	return age >= bounced && age < watch
}

func (w *World) checkOf(id int64) *check {
	if w.checks[id] == nil {
		w.checks[id] = &check{}
	}
	return w.checks[id]
}

// RecordCheck records a look-up.
func (w *World) RecordCheck(_ context.Context, id int64, confirmed bool) error {
	return w.setRow("RecordCheck", id, func(*review.Delivery) {
		c := w.checkOf(id)
		c.checked, c.confirmed = true, c.confirmed || confirmed
	})
}

// FailDelivery closes a row permanently, unless it is sent and its review runs.
func (w *World) FailDelivery(_ context.Context, seen review.Delivery, _ failure.Class) (changed bool, err error) {
	return w.changeRow("FailDelivery", seen, func(row *review.Delivery) bool {
		if row.Status == review.DeliverySent && w.job.State == review.JobInProgress {
			return false
		}
		row.Status, row.NotifiedAt, row.Begun = review.DeliveryFailed, nil, false
		return true
	})
}

// ReleaseDelivery makes a held row pending, unless it was unproven twice.
func (w *World) ReleaseDelivery(_ context.Context, seen review.Delivery) (changed bool, err error) {
	seen.Status = review.DeliveryHeld
	return w.changeRow("ReleaseDelivery", seen, func(row *review.Delivery) bool {
		if w.checkOf(row.ID).unproven > 1 {
			return false
		}
		row.Status = review.DeliveryPending
		return true
	})
}

// RequeueUnproven clears the marks of a sent row of a review that has ended, and holds it
// the second time.
func (w *World) RequeueUnproven(_ context.Context, seen review.Delivery) (status review.DeliveryStatus, err error) {
	seen.Status = review.DeliverySent
	_, err = w.changeRow("RequeueUnproven", seen, func(row *review.Delivery) bool {
		c := w.checkOf(row.ID)
		if w.job.State == review.JobInProgress || c.confirmed || seen.NotifiedAt == nil || !row.NotifiedAt.Equal(*seen.NotifiedAt) {
			return false
		}
		status = review.DeliveryPending
		if c.unproven++; c.unproven > 1 {
			status = review.DeliveryHeld
		}
		row.Status, row.NotifiedAt, row.NotificationID, row.Begun = status, nil, "", row.Attempts > 0
		return true
	})
	return status, err
}

// changeRow changes a row that is as seen.
func (w *World) changeRow(op string, seen review.Delivery, change func(*review.Delivery) bool) (changed bool, err error) {
	err = w.setRow(op, seen.ID, func(row *review.Delivery) {
		changed = row.Status == seen.Status && row.Attempts == seen.Attempts && change(row)
	})
	return changed, err
}
