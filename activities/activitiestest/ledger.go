package activitiestest

import (
	"context"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A record is what reconciliation knows of an outbox row.
type record struct {
	checked, confirmed bool
	unproven           int
}

// Backdate lets all attempts and mails be older by d, and all be due again.
func (w *World) Backdate(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.rows {
		for _, at := range []**time.Time{&w.rows[i].LastAttemptAt, &w.rows[i].NotifiedAt} {
			if *at != nil {
				earlier := (*at).Add(-d)
				*at = &earlier
			}
		}
		w.record(w.rows[i].ID).checked = false
	}
}

// Lose lets the mail server forget what it accepted for the recipient.
func (w *World) Lose(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mailed, address)
}

// Rows returns the outbox.
func (w *World) Rows() []review.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.rows)
}

// SetEarlier sets what the review is a rerun of.
func (w *World) SetEarlier(v review.Version, report review.ArtifactRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.earlier = review.Prior{Changelist: w.change.Number, Version: v, Report: report}
}

// EarlierReport fakes the job of an earlier version.
func (w *World) EarlierReport(context.Context, review.Changelist, review.Version) (review.Prior, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.earlier, w.enter("EarlierReport")
}

// DueDeliveries returns rows with an open end, rows of a finished job that are
// unsent, and rows that were sent, none that was checked since [World.Backdate].
func (w *World) DueDeliveries(_ context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []review.DueDelivery
	for _, row := range w.rows {
		old := row.LastAttemptAt == nil || time.Since(*row.LastAttemptAt) >= grace
		open := (row.Status == review.DeliveryPending || row.Status == review.DeliveryHeld) && (row.Begun || row.NotificationID != "") && old
		left := row.Status == review.DeliveryPending && !row.Begun && w.job.State == review.JobSucceeded
		sent := row.NotifiedAt != nil && time.Since(*row.NotifiedAt) >= bounced && time.Since(*row.NotifiedAt) < watch && !w.record(row.ID).checked
		if (open || left || sent) && len(due) < limit {
			due = append(due, review.DueDelivery{
				Delivery: row, JobState: w.job.State, Report: w.report, Confirmed: w.record(row.ID).confirmed,
			})
		}
	}
	return due, w.enter("DueDeliveries")
}

func (w *World) record(id int64) *record {
	if w.records[id] == nil {
		w.records[id] = &record{}
	}
	return w.records[id]
}

// NoteChecked notes that the provider was asked.
func (w *World) NoteChecked(_ context.Context, id int64, confirmed bool) error {
	return w.setRow("NoteChecked", id, func(*review.Delivery) {
		w.record(id).checked = true
		w.record(id).confirmed = w.record(id).confirmed || confirmed
	})
}

// FailDelivery closes a row for good.
func (w *World) FailDelivery(_ context.Context, seen review.Delivery, _ failure.Class) (changed bool, err error) {
	return w.changeRow("FailDelivery", seen, func(row *review.Delivery) {
		row.Status, row.NotifiedAt, row.Begun = review.DeliveryFailed, nil, false
	})
}

// ReleaseDelivery makes a held row pending.
func (w *World) ReleaseDelivery(_ context.Context, seen review.Delivery) (changed bool, err error) {
	return w.changeRow("ReleaseDelivery", seen, func(row *review.Delivery) { row.Status = review.DeliveryPending })
}

// RequeueUnproven clears the markers of a row, and holds it the second time.
func (w *World) RequeueUnproven(_ context.Context, seen review.Delivery) (status review.DeliveryStatus, err error) {
	_, err = w.changeRow("RequeueUnproven", seen, func(row *review.Delivery) {
		status = review.DeliveryPending
		if w.record(row.ID).unproven++; w.record(row.ID).unproven > 1 {
			status = review.DeliveryHeld
		}
		row.Status, row.NotifiedAt, row.NotificationID, row.Begun = status, nil, "", true
	})
	return status, err
}

// changeRow changes a row that is still as it was seen.
func (w *World) changeRow(op string, seen review.Delivery, change func(*review.Delivery)) (changed bool, err error) {
	err = w.setRow(op, seen.ID, func(row *review.Delivery) {
		if changed = row.Status == seen.Status && row.Attempts == seen.Attempts; changed {
			change(row)
		}
	})
	return changed, err
}
