package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// Redacting serves [QueueRedact]: it reads raw artifacts, writes redacted
// ones, and reaches no network but the database's.
type Redacting struct {
	Raw      artifactReader
	Redacted artifactWriter
	Pipeline *redaction.Pipeline
}

// RedactResult points at the redacted change.
type RedactResult struct {
	Redacted   review.ArtifactRef `json:"redacted"`
	Redactions int                `json:"redactions"`
	Spent      Spent              `json:"spent"`
}

// Redact passes a raw change through the pipeline (security 9.5.1).
func (r *Redacting) Redact(ctx context.Context, p StageParams) (RedactResult, error) {
	body, err := r.Raw.Get(ctx, p.Input)
	if err != nil {
		return RedactResult{}, fmt.Errorf("read raw changelist %d: %w", p.Request.Changelist, err)
	}
	var raw review.Change
	if err := json.Unmarshal(body, &raw); err != nil {
		return RedactResult{}, failure.Errorf(failure.SchemaInvalid, "decode raw changelist %d: stored form is not ours", p.Request.Changelist)
	}
	change, err := r.Pipeline.Change(raw)
	if err != nil {
		return RedactResult{}, fmt.Errorf("redact changelist %d: %w", p.Request.Changelist, err)
	}
	sealed, err := r.Pipeline.Seal(change)
	if err != nil {
		return RedactResult{}, fmt.Errorf("seal changelist %d: %w", p.Request.Changelist, err)
	}
	ref, err := r.Redacted.Put(ctx, sealed)
	if err != nil {
		return RedactResult{}, fmt.Errorf("store redacted changelist %d: %w", p.Request.Changelist, err)
	}
	result := RedactResult{Redacted: ref, Spent: spent(ctx)}
	for _, c := range change.Redactions {
		result.Redactions += c.Count
	}
	countRedactions(ctx, change.Redactions)
	return result, nil
}
