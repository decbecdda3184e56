package activities

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
)

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
