package store

import (
	"context"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// A ReviewRow is one review as operators see it: the job with its times.
type ReviewRow struct {
	review.Job
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// A DeliveryRow is one row of the outbox as operators see it.
type DeliveryRow struct {
	ID             int64                 `json:"id"`
	Changelist     review.Changelist     `json:"changelist"`
	Version        review.Version        `json:"review_version"`
	Recipient      string                `json:"recipient"`
	Status         review.DeliveryStatus `json:"status"`
	Attempts       int                   `json:"attempts"`
	Begun          bool                  `json:"begun"` // an attempt's end is unknown
	LastAttemptAt  *time.Time            `json:"last_attempt_at,omitempty"`
	NotificationID string                `json:"notification_id,omitempty"`
	NotifiedAt     *time.Time            `json:"notified_at,omitempty"`
	FailureClass   string                `json:"failure_class,omitempty"`
	// Evidence names who said that it was accepted.
	Evidence string `json:"evidence,omitempty"`
	// CheckedAt is when reconciliation last asked the provider about it,
	// ConfirmedAt when the provider first had evidence of it.
	CheckedAt   *time.Time `json:"checked_at,omitempty"`
	ConfirmedAt *time.Time `json:"confirmed_at,omitempty"`
	// Unproven counts how often it was marked sent and the provider had no record.
	Unproven int `json:"unproven,omitempty"`
}

// Reviews returns the reviews of a changelist, by version.
func (d *DB) Reviews(ctx context.Context, cl review.Changelist) ([]ReviewRow, error) {
	jobs, err := d.q.JobsOfChangelist(ctx, cl)
	rows := make([]ReviewRow, len(jobs))
	for i, j := range jobs {
		rows[i] = asReviewRow(j)
	}
	return rows, interpret("read reviews", err)
}

func asReviewRow(j db.Job) ReviewRow {
	return ReviewRow{asJob(j), j.CreatedAt, j.UpdatedAt, j.FinishedAt}
}

// ReportOf names the report of a changelist's review, of the newest version that
// has one if v is 0. The error is of class NOT_FOUND if there is none.
func (d *DB) ReportOf(ctx context.Context, cl review.Changelist, v review.Version) (review.ArtifactRef, error) {
	jobs, err := d.q.JobsOfChangelist(ctx, cl)
	if err != nil {
		return "", interpret("read reviews", err)
	}
	for _, j := range slices.Backward(jobs) {
		if ref := text(j.Report); ref != "" && (v == 0 || j.ReviewVersion == v) {
			return review.ArtifactRef(ref), nil
		}
	}
	return "", failure.Errorf(failure.NotFound, "changelist %d has no such review with a report", cl)
}

// ReviewDeliveries returns the outbox of a changelist, by version and recipient.
func (d *DB) ReviewDeliveries(ctx context.Context, cl review.Changelist) ([]DeliveryRow, error) {
	found, err := d.q.DeliveriesOfChangelist(ctx, cl)
	rows := make([]DeliveryRow, len(found))
	for i, f := range found {
		rows[i] = asDeliveryRow(f)
	}
	return rows, interpret("read deliveries", err)
}

func asDeliveryRow(d db.Delivery) DeliveryRow {
	return DeliveryRow{
		ID: d.ID, Changelist: d.ChangelistID, Version: d.ReviewVersion, Recipient: d.Recipient,
		Status: d.Status, Attempts: int(d.Attempts), Begun: d.Begun, LastAttemptAt: d.LastAttemptAt,
		NotificationID: text(d.NotificationID), NotifiedAt: d.NotifiedAt, FailureClass: text(d.FailureClass),
		Evidence: text(d.Evidence), CheckedAt: d.CheckedAt, ConfirmedAt: d.ConfirmedAt, Unproven: int(d.Unproven),
	}
}

// text is what a column holds, empty for null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
