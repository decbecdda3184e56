package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Model serves contract.QueueLLM: the only stage that calls the model. It reads redacted
// artifacts, writes reports, caches the model's answers and records what they cost.
type Model struct {
	Redacted artifactReader
	Reports  artifactWriter
	Unusable artifactWriter // answers that could not be used, for a week
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

// answers stores answers of the model, encrypted, by a hash of the question. An answer belongs to the
// review that stored it last.
type answers interface {
	PutAs(ctx context.Context, of review.Owner, name string, body []byte) error
	// GetAs returns failure.ArtifactExpired for an answer that is not stored.
	GetAs(ctx context.Context, name string) ([]byte, error)
}

// accounts stores what reviews cost and how readers rated findings. Its methods are those of
// store.DB.
type accounts interface {
	ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error)
	SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error
	ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (review.Usage, int, error)
	RecordReview(ctx context.Context, r review.Report, ref review.ArtifactRef) error
	ReportFindings(ctx context.Context, cl review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error)
	AcceptedWrong(ctx context.Context, findings []review.Finding) ([]bool, error)
}

// LLMResult holds the reference of the report.
type LLMResult struct {
	Report   review.ArtifactRef `json:"report"`
	Outcome  review.Outcome     `json:"outcome"`
	Findings int                `json:"findings"`
	Usage    review.Usage       `json:"usage"`
	// StandIn is set if a simulation answered in place of a model.
	StandIn bool `json:"stand_in,omitempty"`
}

// LLM has the model review a redacted change. The model's output is untrusted: it is
// redacted before it is stored.
func (c *Model) LLM(ctx context.Context, p StageParams) (LLMResult, error) {
	cl := p.Request.Changelist
	sealed, err := c.Redacted.Get(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return LLMResult{}, failed(cl, "read redacted change", err)
	}
	change, err := c.Pipeline.Unseal(sealed)
	if err != nil {
		return LLMResult{}, failed(cl, "unseal change", err)
	}
	draft, err := c.draft(ctx, p.Request, change)
	if err != nil {
		return LLMResult{}, failed(cl, "review", err)
	}
	if draft.Findings, err = c.Accounts.ReportFindings(ctx, cl, p.Request.Version, draft.Findings); err != nil {
		return LLMResult{}, failed(cl, "record findings", err)
	}
	draft.StandIn = c.StandIn && draft.Usage.Asked()
	if len(draft.Switches) == 0 { // the prices are the configured model's, and no other model answered
		draft.Cost = c.Prices.Of(draft.Usage)
	}
	report := NewReport(p.Request, change, draft)
	body, err := json.Marshal(report)
	if err != nil {
		return LLMResult{}, failed(cl, "encode report", err)
	}
	ref, err := c.Reports.Put(ctx, p.Request.Owner(), body)
	if err != nil {
		return LLMResult{}, failed(cl, "store report", err)
	}
	if err := c.Accounts.RecordReview(ctx, report, ref); err != nil {
		return LLMResult{}, failed(cl, "record review", err)
	}
	return LLMResult{Report: ref, Outcome: report.Outcome, Findings: len(report.Findings), Usage: report.Usage, StandIn: report.StandIn}, nil
}

// draft returns the model's findings. It redacts all text of the endpoint, including the
// model's name. The attempts at a review share the answer cache and the token budget; the usage
// is the sum of all attempts.
func (c *Model) draft(ctx context.Context, req review.Request, change redaction.Change) (review.Draft, error) {
	_, spent, err := c.Accounts.ReviewUsage(ctx, req.Changelist, req.Version)
	if err != nil {
		return review.Draft{}, failed(req.Changelist, "read tokens spent", err)
	}
	draft, err := c.Reviewer.Review(ctx, change, review.Options{
		Cache:     answerCache{c.Answers, req.Owner()},
		Budget:    tokenBudget{c.Accounts, req, c.TokensPerDay},
		Spent:     spent,
		FindWrong: c.Accounts.AcceptedWrong,
		Unusable: func(ctx context.Context, answer string) (review.ArtifactRef, error) {
			return c.Unusable.Put(ctx, req.Owner(), []byte(answer))
		},
		Progress: func(done, total int) { showProgress(ctx, done, total) },
	})
	countUsage(ctx, draft.Usage)
	countFixes(ctx, draft)
	if err != nil {
		return draft, err
	}
	for _, f := range change.Files {
		for _, open := range f.Open {
			open.Path = f.Path.String()
			draft.Findings = append(draft.Findings, open)
		}
	}
	if draft.Findings, err = c.Pipeline.Findings(draft.Findings); err != nil {
		return draft, failed(req.Changelist, "redact findings", err)
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

// NewReport returns the report on a change that a model has reviewed.
func NewReport(req review.Request, change redaction.Change, draft review.Draft) review.Report {
	report := review.Report{
		Changelist:  req.Changelist,
		Version:     req.Version,
		Shelved:     req.Shelved,
		Author:      change.User.String(),
		Description: change.Description.String(),
		Findings:    draft.Findings,
		Coverage:    draft.Coverage,
		Unread:      draft.Unread,
		Gaps:        change.Gaps,
		Restricted:  change.Restricted,
		Empty:       change.Empty,
		Redactions:  change.Redactions,
		Record:      draft.Record,
		Context:     draft.Context,
		SubmittedAt: change.SubmittedAt.UTC().Format(time.RFC3339),
		ReviewedAt:  time.Now().UTC().Format(time.RFC3339),
	}
	for _, f := range change.Files {
		for _, note := range f.Notes {
			report.Notes = append(report.Notes, review.FileNote{Path: f.Path.String(), Note: note})
		}
	}
	report.Outcome, report.Reason = report.Judge()
	return report
}

// answerCache implements [review.AnswerCache].
type answerCache struct {
	answers
	of review.Owner
}

func (a answerCache) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := a.GetAs(ctx, key)
	if failure.ClassOf(err) == failure.ArtifactExpired {
		return nil, nil
	}
	return body, err
}

func (a answerCache) Put(ctx context.Context, key string, answer []byte) error {
	return a.PutAs(ctx, a.of, key, answer)
}

// tokenBudget implements [review.TokenBudget] for one review.
type tokenBudget struct {
	accounts accounts
	req      review.Request
	perDay   int
}

func (b tokenBudget) Reserve(ctx context.Context, tokens int) (review.Grant, error) {
	return b.accounts.ReserveTokens(ctx, b.req.Changelist, b.req.Version, tokens, b.perDay)
}

func (b tokenBudget) Settle(ctx context.Context, g review.Grant, used review.Usage) error {
	return b.accounts.SettleTokens(ctx, b.req.Changelist, b.req.Version, g, used)
}
