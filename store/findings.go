package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	err := d.inTx(ctx, "record findings", func(q *db.Queries) error {
		for i, f := range reported {
			like := f.Likeness()
			err := q.InsertFinding(ctx, db.InsertFindingParams{
				Token: review.NewFeedbackToken(), Changelist: cl, Version: v, Fingerprint: like.Fingerprints[0],
				PlaceFingerprints: like.Fingerprints[1:], Place: like.Place, Shingles: append([]int{}, like.Shingles...),
				Path: f.Path, Rule: f.Rule, Category: f.Category, Severity: f.Severity, Verbatim: f.IsVerbatim(),
			})
			if err != nil {
				return err
			}
			reported[i].FeedbackToken, err = q.FindingToken(ctx, cl, v, f.Fingerprint())
			if err != nil {
				return err
			}
		}
		return nil
	})
	return reported, err
}

// AcceptedWrong returns for each of the findings whether an operator has accepted that it,
// or the same finding in an earlier version of the file, is wrong. A worse severity than the
// accepted one was not accepted.
func (d *DB) AcceptedWrong(ctx context.Context, findings []review.Finding) ([]bool, error) {
	accepted := make([]bool, len(findings))
	if len(findings) == 0 {
		return accepted, nil
	}
	var places, fingerprints []string
	for _, f := range findings {
		like := f.Likeness()
		places, fingerprints = append(places, like.Place), append(fingerprints, like.Fingerprints[0])
	}
	rows, err := d.AcceptedFindings(ctx, places, fingerprints)
	for i, f := range findings {
		accepted[i] = slices.ContainsFunc(rows, func(r db.AcceptedFindingsRow) bool {
			return f.Severity.Rank() >= r.Severity.Rank() && // worst first
				likeness(r.Fingerprint, r.PlaceFingerprints, r.Place, r.Shingles).Is(f.Likeness())
		})
	}
	return accepted, err
}

func likeness(fingerprint string, others []string, place string, shingles []int) review.Likeness {
	return review.Likeness{Fingerprints: append([]string{fingerprint}, others...), Place: place, Shingles: shingles}
}

// Dispute adds to findings who has called them wrong, in this or an earlier version.
func (d *DB) Dispute(ctx context.Context, findings []review.Finding) error {
	var places []string
	for _, f := range findings {
		places = append(places, f.Likeness().Place)
	}
	rows, err := d.DisputedFindings(ctx, places)
	for i, f := range findings {
		for _, r := range rows {
			if likeness(r.Fingerprint, r.PlaceFingerprints, r.Place, r.Shingles).Is(f.Likeness()) {
				findings[i].Disputed = append(findings[i].Disputed, review.Feedback{Opinion: review.OpinionWrong, Note: r.Note, Who: r.SaidBy, At: r.SaidAt})
			}
		}
	}
	return err
}

// RecordFeedback records a reader's mail. It changes nothing if the finding is no longer
// known, if the sender was not a recipient of its review or of one that adopted its report, or
// if the reader has said something newer. A reader without a user is named by a digest.
func (d *DB) RecordFeedback(ctx context.Context, m review.FeedbackMail) (recorded bool, err error) {
	who, err := d.FindingReader(ctx, m.Sender, m.Token)
	if postgres.NoRow(err) {
		return false, nil
	}
	if err == nil {
		var n int64
		n, err = d.RecordOpinion(ctx, db.RecordOpinionParams{
			Token: m.Token, SaidBy: cmp.Or(who, unnamedReader(m.Token, m.Sender)), Opinion: string(m.Opinion), Note: m.Note, SaidAt: m.At,
		})
		recorded = n > 0
	}
	return recorded, err
}

// unnamedReader tells the readers of one finding apart, and not the readers of two.
func unnamedReader(token, address string) string {
	return fmt.Sprintf("a reader %.4x", sha256.Sum256([]byte(token+strings.ToLower(address))))
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
	return ReportedFinding{f.Token, f.Changelist, f.Version, f.Path, f.Rule, f.Category, f.Severity}
}

// AcceptWrong records that the finding with token is wrong: it is not reported again in later
// versions of its file. The error has class NOT_FOUND if no finding has the token.
func (d *DB) AcceptWrong(ctx context.Context, token, who, note string) (ReportedFinding, error) {
	return d.decideFinding(ctx, "accept", token, who, note, func(q *db.Queries) error {
		_, err := q.RecordOpinion(ctx, db.RecordOpinionParams{Token: token, SaidBy: who, Opinion: string(review.OpinionWrong), Note: note, SaidAt: time.Now()})
		return errors.Join(err, q.AcceptFinding(ctx, who, token))
	})
}

// ForgetFeedback removes all opinions on the finding with token, and reports it again.
func (d *DB) ForgetFeedback(ctx context.Context, token, who, note string) (ReportedFinding, error) {
	return d.decideFinding(ctx, "forget", token, who, note, func(q *db.Queries) error {
		return errors.Join(q.ForgetOpinions(ctx, token), q.UnacceptFinding(ctx, token))
	})
}

func (d *DB) decideFinding(ctx context.Context, action, token, who, note string, decide func(*db.Queries) error) (finding ReportedFinding, err error) {
	err = d.inTx(ctx, "record feedback", func(q *db.Queries) error {
		row, err := q.LockFinding(ctx, token)
		if postgres.NoRow(err) {
			return failure.Errorf(failure.NotFound, "no finding has the token %s", token)
		}
		if err != nil {
			return err
		}
		finding = asReported(row)
		if err := decide(q); err != nil {
			return err
		}
		return audit(ctx, q, "finding:"+token, who, "feedback "+action, map[string]any{
			"changelist": finding.Changelist, "review_version": finding.Version, "note": note,
		})
	})
	return finding, err
}

// A RatedFinding is a finding with an opinion, or one that is not reported again.
type RatedFinding struct {
	ReportedFinding
	Opinion    review.Opinion `json:"opinion,omitempty"`
	Who        string         `json:"who,omitempty"`
	Note       string         `json:"note,omitempty"`
	SaidAt     *time.Time     `json:"said_at,omitempty"`
	AcceptedBy string         `json:"accepted_by,omitempty"` // empty if it is reported again
}

// RatedFindings returns opinions, newest first.
func (d *DB) RatedFindings(ctx context.Context, limit int) ([]RatedFinding, error) {
	rows, err := d.OpinionsOnFindings(ctx, limit)
	return convert(rows, err, func(r db.OpinionsOnFindingsRow) RatedFinding {
		return RatedFinding{
			asReported(r.Finding), review.Opinion(postgres.OrZero(r.Opinion)), postgres.OrZero(r.SaidBy), postgres.OrZero(r.Note), r.SaidAt, postgres.OrZero(r.Finding.AcceptedBy),
		}
	})
}

// A FindingCount counts the reported findings of one kind, and the readers' opinions.
type FindingCount = db.FindingCountsRow
