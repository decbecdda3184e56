package activitiestest

import (
	"context"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// A Database is a real database. The operations below fail as its fakes plans it, and are
// counted there, under the names of their methods.
type Database struct {
	*store.DB
	w    *Fakes
	test *storetest.Database
}

// Open opens an empty database for a user with all rights.
func (w *Fakes) Open(tb testing.TB) Database {
	tb.Helper()
	return w.Over(tb, storetest.New(tb))
}

// Over opens a database of a test for a user with all rights.
func (w *Fakes) Over(tb testing.TB, test *storetest.Database) Database {
	tb.Helper()
	return Database{test.Open(tb, ""), w, test}
}

// try counts a call of op, and makes the call unless op has a fault.
func try[T any](d Database, op string, call func() (T, error)) (result T, err error) {
	if err := d.w.call(op, nil); err != nil {
		return result, err
	}
	return call()
}

// do is try for a call without a result.
func do(d Database, op string, call func() error) error {
	_, err := try(d, op, func() (any, error) { return nil, call() })
	return err
}

// OpenJob implements that method of store.DB.
func (d Database) OpenJob(ctx context.Context, req review.Request, runID string) (review.OpenResult, error) {
	return try(d, "OpenJob", func() (review.OpenResult, error) { return d.DB.OpenJob(ctx, req, runID) })
}

// FinishJob implements that method of store.DB.
func (d Database) FinishJob(ctx context.Context, key string, report review.ArtifactRef) (review.Job, error) {
	return try(d, "FinishJob", func() (review.Job, error) { return d.DB.FinishJob(ctx, key, report) })
}

// RecordDeadLetter implements that method of store.DB.
func (d Database) RecordDeadLetter(ctx context.Context, req review.Request, runID string, deadLetter failure.DeadLetter) (bool, error) {
	return try(d, "RecordDeadLetter", func() (bool, error) { return d.DB.RecordDeadLetter(ctx, req, runID, deadLetter) })
}

// RecordReview implements that method of store.DB.
func (d Database) RecordReview(ctx context.Context, r review.Report, ref review.ArtifactRef) error {
	return do(d, "RecordReview", func() error { return d.DB.RecordReview(ctx, r, ref) })
}

// SaveRecipients implements that method of store.DB.
func (d Database) SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error {
	return do(d, "SaveRecipients", func() error { return d.DB.SaveRecipients(ctx, cl, v, rs) })
}

// Recipients implements that method of store.DB.
func (d Database) Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error) {
	return try(d, "Recipients", func() ([]review.Recipient, error) { return d.DB.Recipients(ctx, cl, v) })
}

// PrepareDeliveries implements that method of store.DB.
func (d Database) PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error) {
	return try(d, "PrepareDeliveries", func() ([]review.Delivery, error) { return d.DB.PrepareDeliveries(ctx, cl, v, addresses) })
}

// Delivery implements that method of store.DB.
func (d Database) Delivery(ctx context.Context, id int64) (review.Delivery, error) {
	return try(d, "Delivery", func() (review.Delivery, error) { return d.DB.Delivery(ctx, id) })
}

// BeginDelivery implements that method of store.DB.
func (d Database) BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error) {
	begun, err := try(d, "BeginDelivery", func() (review.Delivery, error) { return d.DB.BeginDelivery(ctx, seen) })
	if err == nil {
		d.w.set(func() { d.w.begun[begun.Key] = *begun.LastAttemptAt })
	}
	return begun, err
}

// AbandonDelivery implements that method of store.DB.
func (d Database) AbandonDelivery(ctx context.Context, begun review.Delivery) error {
	return do(d, "AbandonDelivery", func() error { return d.DB.AbandonDelivery(ctx, begun) })
}

// MarkSent implements that method of store.DB.
func (d Database) MarkSent(ctx context.Context, id int64, notificationID, evidence string) error {
	return do(d, "MarkSent", func() error { return d.DB.MarkSent(ctx, id, notificationID, evidence) })
}

// MarkDeliveryFailed implements that method of store.DB.
func (d Database) MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error {
	return do(d, "MarkDeliveryFailed", func() error { return d.DB.MarkDeliveryFailed(ctx, seen, class) })
}

// HoldDelivery implements that method of store.DB.
func (d Database) HoldDelivery(ctx context.Context, seen review.Delivery) error {
	return do(d, "HoldDelivery", func() error { return d.DB.HoldDelivery(ctx, seen) })
}

// Exec changes rows without the store.
func (d Database) Exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := d.test.Conn(tb).Exec(tb.Context(), statement, args...); err != nil {
		tb.Fatal(err)
	}
}

// Scan reads one row.
func (d Database) Scan(tb testing.TB, query string, args []any, into ...any) {
	tb.Helper()
	if err := d.test.Conn(tb).QueryRow(tb.Context(), query, args...).Scan(into...); err != nil {
		tb.Fatal(err)
	}
}

// Letters is the number of dead letters.
func (d Database) Letters(tb testing.TB) (n int) {
	tb.Helper()
	d.Scan(tb, `select count(*) from criticizer.dead_letters`, nil, &n)
	return n
}

// Backdate makes all attempts and mails older by the time, and due for a check again.
func (d Database) Backdate(tb testing.TB, by time.Duration) {
	tb.Helper()
	d.Exec(tb, `update criticizer.deliveries
		set last_attempt_at = last_attempt_at - $1::interval, notified_at = notified_at - $1::interval, checked_at = null`, by)
	d.w.set(func() {
		for key, at := range d.w.begun {
			d.w.begun[key] = at.Add(-by)
		}
	})
}

// Shelve lets the change that is fetched be one that was reviewed on the shelf as
// changelist cl, with this report, by the first review of that changelist. It is 4711 for
// a shelf that is shelved again without a change.
func (d Database) Shelve(tb testing.TB, cl review.Changelist, report review.ArtifactRef) {
	tb.Helper()
	req, err := d.ReserveShelf(tb.Context(), "p4", cl, "the event of the former content", "run")
	shelf := get(d.w, func() review.Change { return d.w.change })
	shelf.Shelved = true
	if err == nil {
		_, err = d.RecordContent(tb.Context(), cl, req.Version, shelf.Content())
	}
	if err == nil {
		err = d.DB.RecordReview(tb.Context(), review.Report{Changelist: cl, Version: req.Version, Outcome: review.OutcomeFindings, Findings: make([]review.Finding, 1)}, report)
	}
	if err == nil {
		_, err = d.DB.FinishJob(tb.Context(), req.Key, report)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if cl != shelf.Number { // the submit of a file has the next revision
		d.w.set(func() { d.w.change.OldNumber = cl; d.w.change.Files[0].Revision++ })
	}
}
