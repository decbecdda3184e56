package store

import (
	"context"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// ReportFindings records the findings of a report without their content and returns
// them with their tokens. A finding that an earlier attempt at the same version has
// recorded keeps its token.
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
		Path: f.Path, Rule: f.Rule, Category: f.Category, Severity: f.Severity,
	}
}

// WrongFindings returns the fingerprints that readers have marked wrong.
func (d *DB) WrongFindings(ctx context.Context, fingerprints []string) ([]string, error) {
	if len(fingerprints) == 0 {
		return nil, nil
	}
	wrong, err := d.q.WrongFingerprints(ctx, fingerprints)
	return wrong, postgres.Interpret("read wrong findings", err)
}

// A ReportedFinding is the record of a finding: its place and kind, not its content.
type ReportedFinding struct {
	Token      string            `json:"token"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Path       string            `json:"path"`
	Rule       string            `json:"rule"`
	Category   review.Category   `json:"category"`
	Severity   review.Severity   `json:"severity"`
}

func asReported(f db.Finding) ReportedFinding {
	return ReportedFinding{f.Token, f.ChangelistID, f.ReviewVersion, f.Path, f.Rule, f.Category, f.Severity}
}

// Feedback is a reader's opinion of a finding. Opinion is empty if no reader gave one,
// or if it was withdrawn.
type Feedback struct {
	Opinion review.Opinion
	Who     string
	When    time.Time
}

// GiveFeedback records a reader's opinion of the finding with token and returns the
// finding and the opinion before. A wrong finding is not reported again at any of its
// places, until a finding with the same fingerprint is called useful or the opinion is
// withdrawn, which an empty opinion does. The error has class NOT_FOUND if no finding
// has the token.
func (d *DB) GiveFeedback(ctx context.Context, token string, o review.Opinion, who, note string) (finding ReportedFinding, before Feedback, err error) {
	err = d.inTx(ctx, "record feedback", func(q *db.Queries) error {
		row, err := q.LockFinding(ctx, token)
		if postgres.NoRow(err) {
			return failure.Errorf(failure.NotFound, "no finding has the token %s", token)
		}
		if err != nil {
			return err
		}
		finding = asReported(row)
		before = Feedback{review.Opinion(postgres.OrZero(row.Opinion)), postgres.OrZero(row.SaidBy), postgres.OrZero(row.SaidAt)}
		if err := setOpinion(ctx, q, row, o, who, note); err != nil {
			return err
		}
		return audit(ctx, q, "finding:"+token, who, "feedback", map[string]any{
			"changelist": finding.Changelist, "review_version": finding.Version, "opinion": o, "before": before.Opinion, "note": note,
		})
	})
	return finding, before, err
}

// setOpinion writes the opinion of a finding and whether its fingerprints are wrong:
// the last opinion counts, of any finding.
func setOpinion(ctx context.Context, q *db.Queries, f db.Finding, o review.Opinion, who, note string) error {
	var err error
	if o == "" {
		err = q.ClearOpinion(ctx, f.Token)
	} else {
		err = q.SetOpinion(ctx, db.SetOpinionParams{Token: f.Token, Opinion: string(o), SaidBy: who, Note: note})
	}
	if err != nil {
		return err
	}
	fingerprints := append(f.PlaceFingerprints, f.Fingerprint)
	if o == review.OpinionWrong {
		return q.MarkWrong(ctx, db.MarkWrongParams{Token: f.Token, Fingerprints: fingerprints})
	}
	return q.UnmarkWrong(ctx, fingerprints)
}

// A WrongFinding is a finding that is not reported again.
type WrongFinding struct {
	ReportedFinding
	Places   int       `json:"places"` // where it is not reported
	MarkedAt time.Time `json:"marked_at"`
	Who      string    `json:"who"`
	Note     string    `json:"note"`
}

// AllWrongFindings returns the findings that are not reported again, oldest mark
// first.
func (d *DB) AllWrongFindings(ctx context.Context) ([]WrongFinding, error) {
	rows, err := d.q.WrongFindings(ctx)
	return postgres.Convert("read wrong findings", rows, err, func(r db.WrongFindingsRow) WrongFinding {
		return WrongFinding{asReported(r.Finding), r.Places, r.MarkedAt, postgres.OrZero(r.Finding.SaidBy), r.Finding.Note}
	})
}

// A FindingCount counts the reported findings of one kind, and the readers' opinions.
type FindingCount struct {
	Kind     string `json:"by"` // rule, category, severity, or all of them
	Name     string `json:"name"`
	Reported int    `json:"reported"`
	Useful   int    `json:"useful"`
	Wrong    int    `json:"wrong"`
}

// FindingCounts counts the findings that were reported within the last since: all, by rule
// pack, by category and by severity.
func (d *DB) FindingCounts(ctx context.Context, since time.Duration) ([]FindingCount, error) {
	rows, err := d.q.FindingCounts(ctx, since)
	return postgres.Convert("count findings", rows, err, func(r db.FindingCountsRow) FindingCount { return FindingCount(r) })
}
