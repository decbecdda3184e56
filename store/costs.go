package store

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReserveTokens takes tokens for one call of a review out of the budget of the
// day, of perDay tokens for all workers together; 0 is no limit. They count for
// the review until they are settled.
func (d *DB) ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error) {
	limit := int64(perDay)
	if perDay == 0 {
		limit = math.MaxInt64
	}
	var day pgtype.Date
	err := d.inTx(ctx, "reserve tokens", func(q *db.Queries) (err error) {
		if day, err = q.ReserveTokensOfDay(ctx, db.ReserveTokensOfDayParams{Tokens: int64(tokens), DayLimit: limit}); err != nil {
			return err
		}
		return q.ReserveTokensOfReview(ctx, db.ReserveTokensOfReviewParams{ChangelistID: cl, ReviewVersion: v, Tokens: int64(tokens)})
	})
	if failure.ClassOf(err) == failure.NotFound { // no row: the day has not so many left
		return review.Grant{Refused: true}, nil
	}
	return review.Grant{Tokens: tokens, Day: day.Time}, err
}

// SettleTokens replaces a grant by what the call used.
func (d *DB) SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error {
	change := int64(used.Tokens() - g.Tokens)
	return d.inTx(ctx, "settle tokens", func(q *db.Queries) error {
		err := q.SettleTokensOfDay(ctx, db.SettleTokensOfDayParams{Day: pgtype.Date{Time: g.Day, Valid: true}, Change: change})
		if err != nil {
			return err
		}
		return q.SettleTokensOfReview(ctx, db.SettleTokensOfReviewParams{
			ChangelistID: cl, ReviewVersion: v, Change: change, Calls: int64(used.Calls),
			PromptTokens: int64(used.PromptTokens), CompletionTokens: int64(used.CompletionTokens),
			CachedTokens: int64(used.CachedTokens), Estimated: used.Estimated,
		})
	})
}

// ReviewUsage returns what all attempts at a review have used, and the tokens
// that count against its budget: those of calls whose end is unknown included.
func (d *DB) ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (used review.Usage, tokens int, err error) {
	row, err := d.q.UsageOfReview(ctx, db.UsageOfReviewParams{ChangelistID: cl, ReviewVersion: v})
	if errors.Is(err, pgx.ErrNoRows) {
		return review.Usage{}, 0, nil
	}
	return review.Usage{
		Calls: int(row.Calls), PromptTokens: int(row.PromptTokens), CompletionTokens: int(row.CompletionTokens),
		CachedTokens: int(row.CachedTokens), Estimated: row.Estimated,
	}, int(row.Tokens), interpret("read usage of review", err)
}

// RecordReview keeps how a review was made. A later attempt's record takes the
// place of the one before.
func (d *DB) RecordReview(ctx context.Context, cl review.Changelist, v review.Version, r review.Record) error {
	record, err := json.Marshal(r)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	return interpret("record review", d.q.RecordReview(ctx, db.RecordReviewParams{ChangelistID: cl, ReviewVersion: v, Record: record}))
}

// ReviewRecords returns how the reviews of a changelist were made.
func (d *DB) ReviewRecords(ctx context.Context, cl review.Changelist) (map[review.Version]review.Record, error) {
	rows, err := d.q.ReviewRecords(ctx, cl)
	records := map[review.Version]review.Record{}
	for _, row := range rows {
		var r review.Record
		if err := json.Unmarshal(row.Record, &r); err != nil {
			return nil, failure.Errorf(failure.InvariantViolated, "read record of review: it is not ours")
		}
		records[row.ReviewVersion] = r
	}
	return records, interpret("read records of reviews", err)
}
