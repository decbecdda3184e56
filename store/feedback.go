package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReportFindings records what is about to be reported, without its content, and
// returns the findings with their tokens. A finding that an earlier attempt at
// the same version has recorded keeps its token.
func (d *DB) ReportFindings(ctx context.Context, cl review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error) {
	reported := slices.Clone(findings)
	err := d.inTx(ctx, "record findings", func(q *db.Queries) (err error) {
		for i, f := range reported {
			if err := q.InsertFinding(ctx, newFindingRow(cl, v, f)); err != nil {
				return err
			}
			reported[i].FeedbackToken, err = q.FindingToken(ctx, db.FindingTokenParams{
				ChangelistID: cl, ReviewVersion: v, Fingerprint: f.Fingerprint(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return reported, err
}

func newFindingRow(cl review.Changelist, v review.Version, f review.Finding) db.InsertFindingParams {
	places := []string{}
	for _, p := range f.Places {
		places = append(places, p.Fingerprint)
	}
	return db.InsertFindingParams{
		Token: review.NewFeedbackToken(), ChangelistID: cl, ReviewVersion: v, Fingerprint: f.Fingerprint(), PlaceFingerprints: places,
		Path: f.Path, Rule: f.Rule, Category: string(f.Category), Severity: string(f.Severity),
	}
}

// WrongFindings returns those of fingerprints that readers have marked wrong.
func (d *DB) WrongFindings(ctx context.Context, fingerprints []string) ([]string, error) {
	if len(fingerprints) == 0 {
		return nil, nil
	}
	wrong, err := d.q.WrongFingerprints(ctx, fingerprints)
	return wrong, interpret("read what was marked wrong", err)
}

// A ReportedFinding is what is kept of a finding: where it was and of which
// kind, nothing of what it said.
type ReportedFinding struct {
	Token      string            `json:"token"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Path       string            `json:"path"`
	Rule       string            `json:"rule"`
	Category   review.Category   `json:"category"`
	Severity   review.Severity   `json:"severity"`
}

// Feedback is what was said of a finding. Opinion is empty if nobody said
// anything, or if it was taken back.
type Feedback struct {
	Opinion review.Opinion
	Who     string
	When    time.Time
}

// GiveFeedback records what who says of the finding with token, and returns the
// finding and what was said of it before. What is wrong is not reported again,
// at any of its places, until the same is called useful or that is taken back,
// which an empty opinion does. It is in the audit log when it returns. The
// error has class NOT_FOUND if no finding has the token.
func (d *DB) GiveFeedback(ctx context.Context, token string, o review.Opinion, who, note string) (ReportedFinding, Feedback, error) {
	var finding ReportedFinding
	var before Feedback
	err := d.inTx(ctx, "record feedback", func(q *db.Queries) error {
		row, err := q.LockFinding(ctx, token)
		if errors.Is(err, pgx.ErrNoRows) {
			return failure.Errorf(failure.NotFound, "no finding has the token %s", token)
		}
		if err != nil {
			return err
		}
		finding, before = asReported(token, row), feedbackOf(row)
		if err := say(ctx, q, token, o, who, note); err != nil {
			return err
		}
		if err := mark(ctx, q, token, o, append(row.PlaceFingerprints, row.Fingerprint)); err != nil {
			return err
		}
		return audit(ctx, q, "finding:"+token, who, "feedback", map[string]any{
			"changelist": finding.Changelist, "review_version": finding.Version, "opinion": o, "before": before.Opinion, "note": note,
		})
	})
	return finding, before, err
}

func say(ctx context.Context, q *db.Queries, token string, o review.Opinion, who, note string) error {
	if o == "" {
		return q.UnsayOfFinding(ctx, token)
	}
	return q.SayOfFinding(ctx, db.SayOfFindingParams{Token: token, Opinion: string(o), SaidBy: who, Note: note})
}

// mark has the last word on fingerprints count, whoever spoke before.
func mark(ctx context.Context, q *db.Queries, token string, o review.Opinion, fingerprints []string) error {
	if o == review.OpinionWrong {
		return q.MarkWrong(ctx, db.MarkWrongParams{Token: token, Fingerprints: fingerprints})
	}
	return q.UnmarkWrong(ctx, fingerprints)
}

func asReported(token string, row db.LockFindingRow) ReportedFinding {
	return ReportedFinding{
		Token: token, Changelist: row.ChangelistID, Version: row.ReviewVersion, Path: row.Path, Rule: row.Rule,
		Category: review.Category(row.Category), Severity: review.Severity(row.Severity),
	}
}

func feedbackOf(row db.LockFindingRow) Feedback {
	if row.Opinion == nil || row.SaidBy == nil || row.SaidAt == nil {
		return Feedback{}
	}
	return Feedback{Opinion: review.Opinion(*row.Opinion), Who: *row.SaidBy, When: *row.SaidAt}
}

// A WrongFinding is a finding that is not reported again.
type WrongFinding struct {
	ReportedFinding
	Places   int       `json:"places"` // where it is not reported
	MarkedAt time.Time `json:"marked_at"`
	Who      string    `json:"who"`
	Note     string    `json:"note"`
}

// AllWrongFindings returns what is not reported again, oldest mark first.
func (d *DB) AllWrongFindings(ctx context.Context) ([]WrongFinding, error) {
	rows, err := d.q.WrongFindings(ctx)
	all := make([]WrongFinding, len(rows))
	for i, row := range rows {
		all[i] = WrongFinding{
			ReportedFinding: ReportedFinding{
				Token: row.Token, Changelist: row.ChangelistID, Version: row.ReviewVersion, Path: row.Path, Rule: row.Rule,
				Category: review.Category(row.Category), Severity: review.Severity(row.Severity),
			},
			Places: int(row.Places), MarkedAt: row.MarkedAt, Who: row.SaidBy, Note: row.Note,
		}
	}
	return all, interpret("read what was marked wrong", err)
}

// A FindingCount says how often findings of a kind were reported, and what
// readers said of them.
type FindingCount struct {
	Rule     string
	Category review.Category
	Severity review.Severity
	Reported int
	Useful   int
	Wrong    int
}

// FindingCounts returns the counts of the time since then.
func (d *DB) FindingCounts(ctx context.Context, since time.Duration) ([]FindingCount, error) {
	rows, err := d.q.FindingCounts(ctx, since)
	counts := make([]FindingCount, len(rows))
	for i, row := range rows {
		counts[i] = FindingCount{
			Rule: row.Rule, Category: review.Category(row.Category), Severity: review.Severity(row.Severity),
			Reported: int(row.Reported), Useful: int(row.Useful), Wrong: int(row.Wrong),
		}
	}
	return counts, interpret("count findings", err)
}
