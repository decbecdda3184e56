package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Critiquing serves [QueueLLM]: the only stage that talks to the model. It
// reads redacted artifacts and writes reports.
type Critiquing struct {
	Redacted artifactReader
	Reports  artifactWriter
	Reviewer reviewer
	Pipeline *redaction.Pipeline
}

// reviewer asks the model. progress may be called from any goroutine.
type reviewer interface {
	Review(ctx context.Context, c redaction.Change, progress func(done, total int)) (review.Draft, error)
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
	draft, err := c.ask(ctx, change)
	if err != nil {
		return CritiqueResult{}, fmt.Errorf("review changelist %d: %w", p.Request.Changelist, err)
	}
	countUsage(ctx, draft.Usage)
	report := newReport(p.Request, change, draft)
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
// the model's name, is untrusted.
func (c *Critiquing) ask(ctx context.Context, change redaction.Change) (review.Draft, error) {
	draft, err := c.Reviewer.Review(ctx, change, func(done, total int) {
		activity.GetLogger(ctx).Debug("reviewed chunk", "done", done, "total", total)
	})
	if err != nil {
		return draft, err
	}
	if draft.Findings, err = c.Pipeline.Findings(draft.Findings); err != nil {
		return draft, fmt.Errorf("redact findings: %w", err)
	}
	model, err := c.Pipeline.String(draft.Model)
	draft.Model = model.String()
	return draft, err
}

func newReport(req review.Request, change redaction.Change, draft review.Draft) review.Report {
	report := review.Report{
		Changelist:   req.Changelist,
		Version:      req.Version,
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
		SubmittedAt:  change.SubmittedAt.UTC().Format(time.RFC3339),
		ReviewedAt:   time.Now().UTC().Format(time.RFC3339),
	}
	report.Outcome, report.Reason = report.Judge()
	return report
}
