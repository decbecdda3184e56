package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
)

// item reads what a model is given of a job. The message is what puts its
// secrets back into the answer; redacting it again, hours later, gives the same.
func (w *Working) item(ctx context.Context, job rewrite.Job) (rewrite.Item, redaction.Message, error) {
	item := rewrite.Item{
		JobID: job.ID, Surface: job.Surface, Strength: job.Strength, Languages: job.Languages,
		Model: job.Routing.Model, PromptVersion: job.Routing.PromptVersion,
	}
	textRef, preferencesRef, err := w.parts.Queue.Input(ctx, job.ID)
	if err != nil {
		return item, redaction.Message{}, err
	}
	text, err := w.parts.Texts.Get(ctx, review.ArtifactRef(textRef))
	if err != nil {
		return item, redaction.Message{}, fmt.Errorf("read message of job %s: %w", job.ID, err)
	}
	message, err := w.parts.Pipeline.Message(job.ID, string(text))
	if err != nil {
		return item, redaction.Message{}, fmt.Errorf("redact message of job %s: %w", job.ID, err)
	}
	item.Text = message.Text
	item.Preferences, err = w.preferences(ctx, job, preferencesRef)
	return item, message, err
}

func (w *Working) preferences(ctx context.Context, job rewrite.Job, ref string) (map[string]redaction.Text, error) {
	if ref == "" {
		return nil, nil
	}
	body, err := w.parts.Texts.Get(ctx, review.ArtifactRef(ref))
	if err != nil {
		return nil, fmt.Errorf("read preferences for job %s: %w", job.ID, err)
	}
	var raw map[string]string
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, failure.Errorf(failure.InputInvalid, "read preferences for job %s: they are no JSON object of strings", job.ID)
	}
	redacted := map[string]redaction.Text{}
	for name, value := range raw {
		if redacted[name], err = w.parts.Pipeline.String(value); err != nil {
			return nil, fmt.Errorf("redact preferences for job %s: %w", job.ID, err)
		}
	}
	return redacted, nil
}

// accept judges an answer, puts the secrets back and stores the result.
func (w *Working) accept(ctx context.Context, item rewrite.Item, message redaction.Message, answer rewrite.Answer) (ref string, err error) {
	if err := w.parts.Rewriter.Judge(item, answer); err != nil {
		return "", fmt.Errorf("judge answer to job %s: %w", item.JobID, err)
	}
	result, err := message.Restore(answer.Text)
	if err != nil {
		return "", fmt.Errorf("complete answer to job %s: %w", item.JobID, err)
	}
	err = w.insist(ctx, func(ctx context.Context) error {
		stored, err := w.parts.Texts.Put(ctx, []byte(result))
		ref = string(stored)
		return err
	})
	return ref, err
}
