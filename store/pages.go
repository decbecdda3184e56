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
		return q.InsertPage(ctx, letter, failure.PageEscalated)
	case class.Describe().Category == failure.CategoryConfigOrBug:
		return q.InsertPage(ctx, letter, failure.PageBug)
	case class == failure.AuthDenied, class == failure.QuotaExhausted:
		return q.InsertPageOfCause(ctx, letter, failure.PageDenied)
	}
	return nil
}

// A PageState is the state of the page about a dead letter.
type PageState = db.PageOfRow

// PageOf returns the page about a letter; nil if there is none.
func (d *DB) PageOf(ctx context.Context, letter int64) (*PageState, error) {
	page, err := d.Queries.PageOf(ctx, letter)
	if postgres.NoRow(err) {
		return nil, nil
	}
	return &page, err
}

// ClaimPage claims a page that is due; no other process claims it during lease.
// acceptedBy are the channels that have accepted the page, and attempt counts from 1.
// ok is false if no page is due. A page about a settled letter is never due.
func (d *DB) ClaimPage(ctx context.Context, lease time.Duration) (page failure.Page, acceptedBy []string, attempt int, ok bool, err error) {
	row, err := d.Queries.ClaimPage(ctx, lease)
	if postgres.NoRow(err) {
		return failure.Page{}, nil, 0, false, nil
	} else if err != nil {
		return failure.Page{}, nil, 0, false, err
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
	hint := row.ErrorClass.Describe().Hint
	if row.Reason == failure.PageEscalated {
		hint = failure.EscalatedHint
	}
	return failure.Page{
		ID: row.ID, Outage: outage, Reason: row.Reason,
		Changelist: int64(row.Changelist), ReviewVersion: int(row.Version),
		Stage: row.Stage, ErrorClass: row.ErrorClass, Hint: hint, LastFailureAt: row.LastFailureAt,
		DeadLetterID: row.DeadLetterID, WorkflowID: row.WorkflowID, RunID: row.RunID,
	}, row.AcceptedBy, row.Attempts, true, nil
}

// MarkPageAccepted records that a channel has accepted the page.
func (d *DB) MarkPageAccepted(ctx context.Context, id int64, channel string) error {
	return d.Queries.MarkPageAccepted(ctx, channel, id)
}

// PostponePage ends a claim: the page is due again after delay.
func (d *DB) PostponePage(ctx context.Context, id int64, delay time.Duration) error {
	return d.Queries.PostponePage(ctx, delay, id)
}
