package store

import (
	"context"
	"math"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReserveTokens takes tokens for one call of a review out of the day's token budget of
// all workers; perDay 0 is unlimited. The tokens count for the review until they are
// settled.
func (d *DB) ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error) {
	limit := int64(perDay)
	if perDay == 0 {
		limit = math.MaxInt64
	}
	var day pgtype.Date
	refused := false
	err := d.inTx(ctx, "reserve tokens", func(q *db.Queries) (err error) {
		if day, err = q.ReserveTokensOfDay(ctx, int64(tokens), limit); postgres.NoRow(err) {
			refused = true
			return nil
		}
		if err != nil {
			return err
		}
		return q.ReserveTokensOfReview(ctx, cl, v, tokens)
	})
	if refused {
		return review.Grant{Refused: true}, err
	}
	return review.Grant{Tokens: tokens, Day: day.Time}, err
}

// SettleTokens replaces the reserved tokens of a grant by those that the call used.
func (d *DB) SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error {
	change := int64(used.Tokens() - g.Tokens)
	return d.inTx(ctx, "settle tokens", func(q *db.Queries) error {
		err := q.SettleTokensOfDay(ctx, change, pgtype.Date{Time: g.Day, Valid: true})
		if err != nil {
			return err
		}
		return q.SettleTokensOfReview(ctx, db.SettleTokensOfReviewParams{
			Changelist: cl, Version: v, Change: change, Calls: used.Calls,
			PromptTokens: used.PromptTokens, CompletionTokens: used.CompletionTokens,
			CachedTokens: used.CachedTokens, Estimated: used.Estimated,
		})
	})
}

// ReviewUsage returns the usage of all attempts at a review, and the tokens that count
// against its budget, including those reserved for calls whose result is unknown.
func (d *DB) ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (used review.Usage, tokens int, err error) {
	row, err := d.UsageOfReview(ctx, cl, v)
	if postgres.NoRow(err) {
		return review.Usage{}, 0, nil
	}
	return review.Usage{
		Calls: row.Calls, PromptTokens: row.PromptTokens, CompletionTokens: row.CompletionTokens,
		CachedTokens: row.CachedTokens, Estimated: row.Estimated,
	}, row.Tokens, err
}

// RecordReview records how a review was made, in place of the record of an earlier attempt,
// and the outcome of its report, with which [DB.FinishJob] ends the job.
func (d *DB) RecordReview(ctx context.Context, r review.Report, ref review.ArtifactRef) error {
	return d.inTx(ctx, "record review", func(q *db.Queries) error {
		err := q.RecordReview(ctx, r.Changelist, r.Version, &r.Record)
		if err != nil {
			return err
		}
		err = q.RecordGaps(ctx, db.RecordGapsParams{Changelist: r.Changelist, Version: r.Version, Report: string(ref), Gaps: encoded(append([]review.Unread{}, r.Unread...))})
		if err != nil {
			return err
		}
		t := r.Tally()
		return q.RecordOutcome(ctx, db.RecordOutcomeParams{
			Changelist: r.Changelist, Version: r.Version, Report: ref, Outcome: r.Outcome, Findings: len(r.Findings), StandIn: r.StandIn,
			Coverage: strings.TrimSpace(t.Text() + " " + t.Aside()), Tally: t,
		})
	})
}

// Gaps returns what no model could read in the reviews of a changelist.
func (d *DB) Gaps(ctx context.Context, cl review.Changelist) (map[review.Version][]review.Unread, error) {
	rows, err := d.GapsOfChangelist(ctx, cl)
	gaps := map[review.Version][]review.Unread{}
	for _, g := range rows {
		gaps[g.Version] = append(gaps[g.Version], review.Unread{Path: g.Path, Lines: g.Lines, Why: review.SkipReason(g.Why), Class: g.Class, Context: g.Context})
	}
	return gaps, err
}

// RecordRerun records in the audit log who asked for another version of a review, and why.
func (d *DB) RecordRerun(ctx context.Context, req review.Request, who, reason string) error {
	return audit(ctx, d.Queries, "review:"+req.Key, who, "review.rerun", map[string]any{"reason": reason})
}

// ReviewRecords returns how the reviews of a changelist were made.
func (d *DB) ReviewRecords(ctx context.Context, cl review.Changelist) (map[review.Version]review.Record, error) {
	rows, err := d.Queries.ReviewRecords(ctx, cl)
	records := map[review.Version]review.Record{}
	for _, row := range rows {
		records[row.Version] = *row.Record
	}
	return records, err
}
