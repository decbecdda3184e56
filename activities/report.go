package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// recall gives the findings that another review has reported before the texts of its report.
// Without them, because the report has expired, they name that review.
func (n *Notifier) recall(ctx context.Context, findings []review.Finding) error {
	reports := map[review.Owner]review.Report{}
	for i, f := range findings {
		if f.Origin == nil {
			continue
		}
		of := review.Owner{Changelist: f.Origin.Changelist, Version: f.Origin.Version}
		report, known := reports[of]
		if !known {
			ref, err := n.Outbox.ReportOfReview(ctx, of)
			if err == nil {
				report, err = n.report(ctx, of, ref)
			}
			if err != nil && failure.ClassOf(err).Retryable() {
				return err
			}
			reports[of] = report
		}
		for _, before := range report.Findings {
			if slices.Contains(before.Fingerprints(), f.Origin.Fingerprint) {
				findings[i].Title += ": " + before.Title
				findings[i].Explanation, findings[i].Suggestion = before.Explanation, before.Suggestion
			}
		}
	}
	return nil
}

// report reads the report of a review, or the one that it has adopted.
func (n *Notifier) report(ctx context.Context, of review.Owner, ref review.ArtifactRef) (review.Report, error) {
	owner, err := n.Outbox.ReportOwner(ctx, of, ref)
	if err != nil {
		return review.Report{}, failed(of.Changelist, "find owner of report", err)
	}
	body, err := n.Reports.Get(ctx, owner, ref)
	if err != nil {
		return review.Report{}, fmt.Errorf("read report on changelist %d: %w", of.Changelist, err)
	}
	var report review.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return review.Report{}, failure.Errorf(failure.SchemaInvalid, "decode report on changelist %d: unknown format", of.Changelist)
	}
	if report.Owner() != owner {
		return review.Report{}, failure.Errorf(failure.ArtifactForeign, "read report %s: it is of changelist %d version %d, not %d version %d",
			ref, report.Changelist, report.Version, owner.Changelist, owner.Version)
	}
	return report, nil
}

// compare adds to the report of a rerun, or of the submit of a shelf, what changed since
// the earlier report. If that has expired or cannot be decrypted, a retry does not help:
// the mail then has no comparison. A review that is to report only what is new fails instead.
func (n *Notifier) compare(ctx context.Context, report *review.Report, req review.Request) error {
	before, err := n.Outbox.EarlierReport(ctx, req.Changelist, req.Version)
	if err != nil {
		return failed(req.Changelist, "find earlier review", err)
	}
	report.Earlier, report.EarlierOf = before.Version, before.Changelist
	if report.Changelist != req.Changelist || report.Version != req.Version {
		report.Adopt(req, before.Until)
		return nil
	}
	if before.Report == "" && !req.OnlyNew {
		return nil
	}
	earlier, err := n.report(ctx, review.Owner{Changelist: before.Changelist, Version: before.Version}, before.Report)
	switch {
	case err == nil:
		report.Progress = review.Compare(earlier, *report)
		if req.OnlyNew {
			report.Findings = slices.DeleteFunc(report.Findings, func(f review.Finding) bool { return !report.Progress.IsNew(f) })
		}
	case failure.ClassOf(err).Retryable():
		return err
	case req.OnlyNew:
		return fmt.Errorf("find what is new since version %d: %w: resolve this dead letter, and review the change as a whole: criticizer-starter change-commit --review-version %d %d",
			before.Version, err, req.Version+1, req.Changelist)
	default:
		n.Log.InfoContext(ctx, "earlier report not compared", "changelist", int64(report.Changelist),
			"review_version", int(report.Version), "earlier", int(before.Version), "error", err)
	}
	return nil
}

// Adoption is the result of a shelf's review. Its report is empty if the report has
// expired or cannot be decrypted.
type Adoption struct {
	LLMResult
	Spent Spent `json:"spent"`
}

// AdoptReport reads the report of a shelf's review, which becomes the submit's report.
// The report is not copied: [Notifier.Notify] puts the submit's changelist into it. It
// returns an error for any report other than the one that the database names for the
// shelf.
func (n *Notifier) AdoptReport(ctx context.Context, p StageParams) (Adoption, error) {
	adopted, err := n.Outbox.AdoptOutcome(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return Adoption{}, failed(p.Request.Changelist, "adopt outcome", err)
	}
	report, err := n.report(ctx, p.Request.Owner(), p.Input)
	if err == nil && !adopted {
		err = failure.Errorf(failure.ArtifactForeign, "adopt report %s: it is not of the shelf of changelist %d", p.Input, p.Request.Changelist)
	}
	switch {
	case err == nil:
		return Adoption{LLMResult{Report: p.Input, Outcome: report.Outcome, Findings: len(report.Findings), StandIn: report.StandIn}, spent(ctx)}, nil
	case failure.ClassOf(err).Retryable(), failure.ClassOf(err) == failure.ArtifactForeign:
		return Adoption{}, err
	}
	n.Log.InfoContext(ctx, "report of the shelf not adopted", "changelist", int64(p.Request.Changelist), "error", err)
	return Adoption{Spent: spent(ctx)}, nil
}
