package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

// item reads and redacts the texts of a job. The message restores the secrets of the
// answer. Redacting a text again returns the same placeholders, so a batch may be
// collected by another worker.
func (a *Activities) item(ctx context.Context, job rewrite.Job) (rewrite.Item, redaction.Message, error) {
	item := rewrite.Item{JobID: job.ID, Strength: job.Strength, Languages: job.Languages}
	input, err := a.parts.Queue.Input(ctx, job.ID)
	if err != nil {
		return item, redaction.Message{}, err
	}
	text, err := a.read(ctx, input.TextRef)
	if err != nil {
		return item, redaction.Message{}, fmt.Errorf("read message of job %s: %w", job.ID, err)
	}
	message, err := a.parts.Pipeline.Message(job.ID, string(text))
	if err != nil {
		return item, redaction.Message{}, fmt.Errorf("redact message of job %s: %w", job.ID, err)
	}
	item.Text = message.Text
	if input.PreferencesRef == "" {
		return item, message, nil
	}
	body, err := a.read(ctx, input.PreferencesRef)
	if err != nil {
		return item, message, fmt.Errorf("read preferences for job %s: %w", job.ID, err)
	}
	var raw map[string]string
	if err := json.Unmarshal(body, &raw); err != nil {
		return item, message, failure.Errorf(failure.InputInvalid, "read preferences for job %s: they are not a JSON object of strings", job.ID)
	}
	item.Preferences = map[string]redaction.Text{}
	for name, value := range raw {
		if item.Preferences[name], err = a.parts.Pipeline.String(value); err != nil {
			return item, message, fmt.Errorf("redact preferences for job %s: %w", job.ID, err)
		}
	}
	return item, message, nil
}

// read returns a stored text. If it cannot be decrypted, the error has class
// ARTIFACT_UNREADABLE if the worker's keyset opens the message of one of the newest jobs,
// and CONFIG_INVALID if it opens none. If the keys of old texts are gone, new ones open.
func (a *Activities) read(ctx context.Context, ref string) ([]byte, error) {
	text, err := a.parts.Messages.Get(ctx, artifact.Owner{}, artifact.Ref(ref))
	if failure.ClassOf(err) != failure.ConfigInvalid {
		return text, err
	}
	newest, unread := a.parts.Queue.NewestMessages(ctx, 100)
	if unread != nil {
		return nil, unread
	}
	opens := func(other string) bool {
		_, err := a.parts.Messages.Get(ctx, artifact.Owner{}, artifact.Ref(other))
		return err == nil
	}
	if slices.ContainsFunc(newest, opens) {
		err = failure.Errorf(failure.ArtifactUnreadable, "the keyset opens other texts: %w", err)
	}
	return nil, err
}

// accept checks an answer, restores the secrets and stores the result.
func (a *Activities) accept(ctx context.Context, item rewrite.Item, message redaction.Message, answer string) (ref string, err error) {
	if err := a.parts.Provider.Check(item, answer); err != nil {
		return "", fmt.Errorf("check answer to job %s: %w", item.JobID, err)
	}
	result, err := message.Restore(answer)
	if err != nil {
		return "", fmt.Errorf("restore secrets of job %s: %w", item.JobID, err)
	}
	err = a.retryWrite(ctx, func(ctx context.Context) error {
		stored, err := a.parts.Results.Put(ctx, artifact.Owner{}, []byte(result))
		ref = string(stored)
		return err
	})
	return ref, err
}
