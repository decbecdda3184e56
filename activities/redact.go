package activities

import (
	"context"
	"encoding/json"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Redactor serves contract.QueueRedact: it reads raw artifacts, writes redacted ones, and uses
// no network but the database's.
type Redactor struct {
	Raw      artifactReader
	Redacted artifactWriter
	Pipeline *redaction.Pipeline
}

// RedactResult holds the reference of the redacted change.
type RedactResult struct {
	Redacted   review.ArtifactRef `json:"redacted"`
	Redactions int                `json:"redactions"`
	Spent      Spent              `json:"spent"`
}

// Redact passes a raw change through the redaction pipeline.
func (r *Redactor) Redact(ctx context.Context, p StageParams) (RedactResult, error) {
	cl := p.Request.Changelist
	body, err := r.Raw.Get(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return RedactResult{}, failed(cl, "read raw change", err)
	}
	var raw review.Change
	if err := json.Unmarshal(body, &raw); err != nil {
		return RedactResult{}, failure.Errorf(failure.SchemaInvalid, "decode raw changelist %d: unknown format", cl)
	}
	change, err := r.Pipeline.Change(raw)
	if err != nil {
		return RedactResult{}, failed(cl, "redact change", err)
	}
	sealed, err := r.Pipeline.Seal(change)
	if err != nil {
		return RedactResult{}, failed(cl, "seal change", err)
	}
	ref, err := r.Redacted.Put(ctx, p.Request.Owner(), sealed)
	if err != nil {
		return RedactResult{}, failed(cl, "store redacted change", err)
	}
	result := RedactResult{Redacted: ref, Spent: spent(ctx)}
	for _, c := range change.Redactions {
		result.Redactions += c.Count
	}
	countRedactions(ctx, change.Redactions)
	return result, nil
}
