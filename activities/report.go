package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// versions knows the reviews of a changelist.
type versions interface {
	// EarlierReport returns the last review of the changelist, or of the shelf that it
	// was, that had succeeded when v was opened; zero if there is none. All attempts
	// get the same answer.
	EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.Prior, error)
}

// compose reads a report and adds what only stage notify knows: users without a usable
// address, where to send feedback, and the changes since an earlier version. It also
// returns the recipients.
func (n *Notifying) compose(ctx context.Context, p StageParams) (review.Report, choice, error) {
	cl := p.Request.Changelist
	report, err := n.report(ctx, cl, p.Input)
	if err != nil {
		return review.Report{}, choice{}, err
	}
	if err := n.compare(ctx, &report, p.Request); err != nil {
		return review.Report{}, choice{}, err
	}
	known, err := n.Outbox.Recipients(ctx, report.Changelist, report.Version)
	if err != nil {
		return review.Report{}, choice{}, about(cl, "read recipients", err)
	}
	chosen := n.Policy.choose(known, report.Outcome)
	report.Unresolved = chosen.unresolved
	report.Feedback = n.Feedback
	return report, chosen, nil
}

func (n *Notifying) report(ctx context.Context, cl review.Changelist, ref review.ArtifactRef) (review.Report, error) {
	body, err := n.Reports.Get(ctx, ref)
	if err != nil {
		return review.Report{}, fmt.Errorf("read report on changelist %d: %w", cl, err)
	}
	var report review.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return review.Report{}, failure.Errorf(failure.SchemaInvalid, "decode report on changelist %d: unknown format", cl)
	}
	return report, nil
}

// compare adds to the report of a rerun, or of the submit of a shelf, what changed since
// the earlier report. If that has expired or cannot be decrypted, a retry does not help:
// the mail then has no comparison.
func (n *Notifying) compare(ctx context.Context, report *review.Report, req review.Request) error {
	prior, err := n.Outbox.EarlierReport(ctx, req.Changelist, req.Version)
	if err != nil {
		return about(req.Changelist, "find earlier review", err)
	}
	report.Earlier, report.EarlierOf = prior.Version, prior.Changelist
	if report.Changelist != req.Changelist || report.Version != req.Version {
		report.Adopt(req, prior.Until)
		return nil
	}
	if prior.Report == "" {
		return nil
	}
	earlier, err := n.report(ctx, report.Changelist, prior.Report)
	switch {
	case err == nil:
		report.Progress = review.Compare(earlier, *report)
	case failure.ClassOf(err).Retryable():
		return err
	default:
		n.Log.InfoContext(ctx, "earlier report not compared", "changelist", int64(report.Changelist),
			"review_version", int(report.Version), "earlier", int(prior.Version), "error", err)
	}
	return nil
}
