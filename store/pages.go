package store

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/store/db"
)

// insertPage inserts the page about a dead letter, if the operator on call is needed:
// for escalation and bugs (processing 8.1, 8.5), and for a refused
// credential or used-up credit, which stops every review and pages once.
func insertPage(ctx context.Context, q *db.Queries, letter int64, escalated bool, class failure.Class) error {
	switch {
	case escalated:
		return q.InsertPage(ctx, db.InsertPageParams{DeadLetterID: letter, Reason: failure.PageEscalated})
	case class.Describe().Category == failure.CategoryConfigOrBug:
		return q.InsertPage(ctx, db.InsertPageParams{DeadLetterID: letter, Reason: failure.PageBug})
	case class == failure.AuthDenied, class == failure.QuotaExhausted:
		return q.InsertPageOfCause(ctx, db.InsertPageOfCauseParams{DeadLetterID: letter, Reason: failure.PageDenied})
	}
	return nil
}

// A PageState is the state of the page about a dead letter.
type PageState struct {
	Reason   failure.PageReason `json:"reason"`
	Attempts int                `json:"attempts"`
	SentAt   *time.Time         `json:"sent_at,omitempty"`
}

// PageOf returns the page about a letter; nil if there is none.
func (d *DB) PageOf(ctx context.Context, letter int64) (*PageState, error) {
	row, err := d.q.PageOf(ctx, letter)
	if postgres.NoRow(err) {
		return nil, nil
	}
	if err != nil {
		return nil, postgres.Interpret("read page", err)
	}
	page := PageState(row)
	return &page, nil
}

// ClaimPage claims a page that is due; no other process claims it during lease.
// acceptedBy are the channels that have accepted the page, and attempt counts from 1.
// ok is false if no page is due. A page about a settled letter is never due.
func (d *DB) ClaimPage(ctx context.Context, lease time.Duration) (page failure.Page, acceptedBy []string, attempt int, ok bool, err error) {
	row, err := d.q.ClaimPage(ctx, lease)
	if postgres.NoRow(err) {
		return failure.Page{}, nil, 0, false, nil
	}
	outages, err := d.Outages(ctx)
	if err != nil {
		return failure.Page{}, nil, 0, false, err
	}
	outage := ""
	for _, o := range outages {
		if o.Stage == row.Stage {
			outage = fmt.Sprintf("the circuit breaker of stage %s is open since %s: its reviews wait and need no replay", o.Stage, o.Since.UTC().Format(time.RFC3339))
		}
	}
	return failure.Page{
		ID: row.ID, Outage: outage, Reason: row.Reason,
		Changelist: int64(row.ChangelistID), ReviewVersion: int(row.ReviewVersion),
		Stage: row.Stage, ErrorClass: row.ErrorClass, Hint: row.ErrorClass.Describe().Hint, LastFailureAt: row.LastFailureAt,
		DeadLetterID: row.DeadLetterID, WorkflowID: row.WorkflowID, RunID: row.RunID,
	}, row.AcceptedBy, row.Attempts, err == nil, postgres.Interpret("claim page", err)
}

// MarkPageAccepted records that a channel has accepted the page.
func (d *DB) MarkPageAccepted(ctx context.Context, id int64, channel string) error {
	return postgres.Interpret("mark page accepted", d.q.MarkPageAccepted(ctx, db.MarkPageAcceptedParams{ID: id, Channel: channel}))
}

// MarkPageSent records that every channel has accepted the page.
func (d *DB) MarkPageSent(ctx context.Context, id int64) error {
	return postgres.Interpret("mark page sent", d.q.MarkPageSent(ctx, id))
}

// PostponePage ends a claim: the page is due again after delay.
func (d *DB) PostponePage(ctx context.Context, id int64, delay time.Duration) error {
	return postgres.Interpret("postpone page", d.q.PostponePage(ctx, db.PostponePageParams{ID: id, Delay: delay}))
}
