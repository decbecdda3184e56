package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// versions knows the reviews of a changelist.
type versions interface {
	// AdoptOutcome lets a review use the report of its shelf's review; false if the database
	// does not know that both had the same content.
	AdoptOutcome(ctx context.Context, of review.Owner, report review.ArtifactRef) (bool, error)
	// ReportOwner returns the review that the given one has adopted the report from, or the
	// given one.
	ReportOwner(ctx context.Context, of review.Owner, report review.ArtifactRef) (review.Owner, error)
	// ReportOfReview returns the report of a review.
	ReportOfReview(ctx context.Context, of review.Owner) (review.ArtifactRef, error)
	// EarlierReport returns the last review of the changelist, or of the shelf that it
	// was, that had succeeded when v was opened; zero if there is none. All attempts
	// get the same answer.
	EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.EarlierReview, error)
}

// compose reads a report and adds what only stage notify knows: users without a usable
// address, what readers say about the findings, and the changes since an earlier version. It also
// returns the recipients.
func (n *Notifier) compose(ctx context.Context, p StageParams) (review.Report, choice, error) {
	cl := p.Request.Changelist
	report, err := n.report(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return review.Report{}, choice{}, err
	}
	if err := n.compare(ctx, &report, p.Request); err != nil {
		return review.Report{}, choice{}, err
	}
	if err := n.recall(ctx, report.Findings); err != nil {
		return review.Report{}, choice{}, err
	}
	known, err := n.Outbox.Recipients(ctx, report.Changelist, report.Version)
	if err != nil {
		return review.Report{}, choice{}, failed(cl, "read recipients", err)
	}
	policy := n.Policy
	if policy.Bounced, err = n.Outbox.Bounced(ctx, addressesOf(known)); err != nil {
		return review.Report{}, choice{}, failed(cl, "read bounced addresses", err)
	}
	quiet, outcome := p.Request.OnlyNew && len(report.Findings) == 0, report.Outcome
	if quiet { // with no new finding, no recipient is notified
		outcome, policy.CleanTo = review.OutcomeClean, CleanToNobody
	}
	chosen := policy.choose(known, outcome)
	if chosen.quiet = quiet; quiet {
		for i, e := range chosen.excluded {
			if e.Why == findingsOnly {
				chosen.excluded[i].Why = fmt.Sprintf("has nothing new since version %d", report.Earlier)
			}
		}
	}
	for _, person := range known {
		if address, err := review.ParseAddress(person.Address); person.Role == review.RoleAuthor && err == nil {
			report.ReplyTo = address
		}
	}
	report.Unresolved, report.Outside = chosen.unresolved, chosen.outside
	report.Links = n.Links
	if err := n.Outbox.Dispute(ctx, report.Findings); err != nil {
		return review.Report{}, choice{}, failed(cl, "read opinions on findings", err)
	}
	return report, chosen, nil
}

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
