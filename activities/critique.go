package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Critiquing serves [QueueLLM]: the only stage that calls the model. It reads redacted
// artifacts, writes reports, caches the model's answers and records what they cost.
type Critiquing struct {
	Redacted artifactReader
	Reports  artifactWriter
	Answers  answers
	Accounts accounts
	Reviewer reviewer
	Pipeline *redaction.Pipeline
	// TokensPerDay is the token budget of all workers together; 0 is unlimited.
	TokensPerDay int
	// Prices give the cost in the report. Default: none.
	Prices review.Prices
	// StandIn marks the reports of an endpoint that is a simulation.
	StandIn bool
}

// reviewer calls the model.
type reviewer interface {
	Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error)
}

// CritiqueResult holds the reference of the report.
type CritiqueResult struct {
	Report   review.ArtifactRef `json:"report"`
	Outcome  review.Outcome     `json:"outcome"`
	Findings int                `json:"findings"`
	Usage    review.Usage       `json:"usage"`
	// StandIn is set if a simulation answered in place of a model.
	StandIn bool `json:"stand_in,omitempty"`
}

// Critique has the model review a redacted change. The model's output is untrusted: it is
// redacted before it is stored.
func (c *Critiquing) Critique(ctx context.Context, p StageParams) (CritiqueResult, error) {
	cl := p.Request.Changelist
	sealed, err := c.Redacted.Get(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return CritiqueResult{}, about(cl, "read redacted change", err)
	}
	change, err := c.Pipeline.Unseal(sealed)
	if err != nil {
		return CritiqueResult{}, about(cl, "unseal change", err)
	}
	draft, err := c.draft(ctx, p.Request, change)
	if err != nil {
		return CritiqueResult{}, about(cl, "review", err)
	}
	if draft.Findings, err = c.Accounts.ReportFindings(ctx, cl, p.Request.Version, draft.Findings); err != nil {
		return CritiqueResult{}, about(cl, "record findings", err)
	}
	c.priceAndMark(&draft.Record)
	if err := c.Accounts.RecordReview(ctx, cl, p.Request.Version, draft.Record); err != nil {
		return CritiqueResult{}, about(cl, "record review", err)
	}
	report := newReport(p.Request, change, draft)
	body, err := json.Marshal(report)
	if err != nil {
		return CritiqueResult{}, about(cl, "encode report", err)
	}
	ref, err := c.Reports.Put(ctx, p.Request.Owner(), body)
	if err != nil {
		return CritiqueResult{}, about(cl, "store report", err)
	}
	return CritiqueResult{Report: ref, Outcome: report.Outcome, Findings: len(report.Findings), Usage: report.Usage, StandIn: report.StandIn}, nil
}

// draft returns the model's findings. It redacts all text of the endpoint, including the
// model's name. The usage is the sum of all attempts.
func (c *Critiquing) draft(ctx context.Context, req review.Request, change redaction.Change) (review.Draft, error) {
	o, err := c.options(ctx, req)
	if err != nil {
		return review.Draft{}, err
	}
	draft, err := c.Reviewer.Review(ctx, change, o)
	countUsage(ctx, draft.Usage)
	countFixes(ctx, draft)
	if err != nil {
		return draft, err
	}
	if draft.Findings, err = c.Pipeline.Findings(draft.Findings); err != nil {
		return draft, about(req.Changelist, "redact findings", err)
	}
	used, _, err := c.Accounts.ReviewUsage(ctx, req.Changelist, req.Version)
	if err != nil {
		return draft, err
	}
	used.Kept, used.Unproven = draft.Usage.Kept, draft.Usage.Unproven
	draft.Usage = used
	model, err := c.Pipeline.String(draft.Model)
	draft.Model = model.String()
	return draft, err
}

// priceAndMark sets the cost and whether a simulation answered. There is no cost if another
// model answered, because the configured prices are the configured model's.
func (c *Critiquing) priceAndMark(r *review.Record) {
	r.StandIn = c.StandIn && r.Usage.Asked()
	if len(r.Switches) == 0 {
		r.Cost = c.Prices.Of(r.Usage)
	}
}

func newReport(req review.Request, change redaction.Change, draft review.Draft) review.Report {
	report := review.Report{
		Changelist:  req.Changelist,
		Version:     req.Version,
		Shelved:     req.Shelved,
		Author:      change.User.String(),
		Description: change.Description.String(),
		Findings:    draft.Findings,
		Omissions:   draft.Omissions,
		FilesTotal:  len(change.Files),
		Gaps:        change.Gaps,
		FilesRead:   draft.FilesRead,
		Redactions:  change.Redactions,
		Record:      draft.Record,
		Context:     draft.Context,
		SubmittedAt: change.SubmittedAt.UTC().Format(time.RFC3339),
		ReviewedAt:  time.Now().UTC().Format(time.RFC3339),
	}
	report.Anchors = nil
	for _, f := range change.Files {
		if f.Charset != "" && f.Skipped == "" {
			report.Guesses = append(report.Guesses, review.Guess{Path: f.Path.String(), Charset: f.Charset})
		}
	}
	report.Outcome, report.Reason = report.Judge()
	return report
}
