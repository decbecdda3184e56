package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Critiquing serves [QueueLLM]: the only stage that talks to the model. It
// reads redacted artifacts, writes reports, keeps what the model answered and
// accounts for it.
type Critiquing struct {
	Redacted artifactReader
	Reports  artifactWriter
	Answers  answers
	Accounts accounts
	Reviewer reviewer
	Pipeline *redaction.Pipeline
	// TokensPerDay is the budget of all workers together; 0 is no limit.
	TokensPerDay int
	// Prices are told in the report. Default: no cost is.
	Prices review.Prices
}

// reviewer asks the model.
type reviewer interface {
	Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error)
}

// CritiqueResult points at the report.
type CritiqueResult struct {
	Report   review.ArtifactRef `json:"report"`
	Outcome  review.Outcome     `json:"outcome"`
	Findings int                `json:"findings"`
	Usage    review.Usage       `json:"usage"`
}

// Critique has the model review a redacted change. What the model says is
// untrusted: it passes redaction again before it is stored.
func (c *Critiquing) Critique(ctx context.Context, p StageParams) (CritiqueResult, error) {
	sealed, err := c.Redacted.Get(ctx, p.Input)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("read redacted changelist %d: %w", p.Request.Changelist, err)
	}
	change, err := c.Pipeline.Unseal(sealed)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("unseal changelist %d: %w", p.Request.Changelist, err)
	}
	draft, err := c.ask(ctx, p.Request, change)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("review changelist %d: %w", p.Request.Changelist, err)
	}
	if draft.Findings, err = c.Accounts.ReportFindings(ctx, p.Request.Changelist, p.Request.Version, draft.Findings); err != nil {
		return CritiqueResult{}, fmt.Errorf("give tokens to findings on changelist %d: %w", p.Request.Changelist, err)
	}
	report := newReport(p.Request, change, draft)
	if report.Cost, err = c.account(ctx, p.Request, draft); err != nil {
		return CritiqueResult{}, fmt.Errorf("record review of changelist %d: %w", p.Request.Changelist, err)
	}
	body, err := json.Marshal(report)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("encode report on changelist %d: %w", p.Request.Changelist, err)
	}
	ref, err := c.Reports.Put(ctx, body)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("store report on changelist %d: %w", p.Request.Changelist, err)
	}
	return CritiqueResult{Report: ref, Outcome: report.Outcome, Findings: len(report.Findings), Usage: report.Usage}, nil
}

// ask returns what the model said, redacted: what the endpoint wrote, down to
// the models' names, is untrusted. The usage is that of all attempts.
func (c *Critiquing) ask(ctx context.Context, req review.Request, change redaction.Change) (review.Draft, error) {
	o, err := c.options(ctx, req)
	if err != nil {
		return review.Draft{}, err
	}
	draft, err := c.Reviewer.Review(ctx, change, o)
	if err != nil {
		return draft, err
	}
	if draft.Findings, err = c.Pipeline.Findings(draft.Findings); err != nil {
		return draft, fmt.Errorf("redact findings: %w", err)
	}
	countUsage(ctx, draft.Usage)
	used, _, err := c.Accounts.ReviewUsage(ctx, req.Changelist, req.Version)
	if err != nil {
		return draft, err
	}
	used.Kept = draft.Usage.Kept
	draft.Usage = used
	model, err := c.Pipeline.String(draft.Model)
	draft.Model = model.String()
	return draft, err
}

// account records how the review was made and returns what it cost, nil where
// that cannot be told: the prices are those of the model that is configured.
func (c *Critiquing) account(ctx context.Context, req review.Request, d review.Draft) (*review.Cost, error) {
	var cost *review.Cost
	if len(d.Switches) == 0 {
		cost = c.Prices.Of(d.Usage)
	}
	return cost, c.Accounts.RecordReview(ctx, req.Changelist, req.Version, review.Record{
		Model: d.Model, PromptDigest: d.PromptDigest, Usage: d.Usage, Anchors: d.Anchors, Dropped: d.Dropped,
		Check: d.Check, Switches: d.Switches, Cost: cost,
	})
}

func newReport(req review.Request, change redaction.Change, draft review.Draft) review.Report {
	report := review.Report{
		Changelist:   req.Changelist,
		Version:      req.Version,
		Shelved:      req.Shelved,
		Author:       change.User.String(),
		Description:  change.Description.String(),
		Findings:     draft.Findings,
		Omissions:    draft.Omissions,
		FilesTotal:   len(change.Files),
		FilesRead:    draft.FilesRead,
		Redactions:   change.Redactions,
		Model:        draft.Model,
		PromptDigest: draft.PromptDigest,
		Usage:        draft.Usage,
		Dropped:      draft.Dropped,
		Check:        draft.Check,
		Switches:     draft.Switches,
		SubmittedAt:  change.SubmittedAt.UTC().Format(time.RFC3339),
		ReviewedAt:   time.Now().UTC().Format(time.RFC3339),
	}
	report.Outcome, report.Reason = report.Judge()
	return report
}
