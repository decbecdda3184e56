package llm

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Preview is the layout of a change into calls, assuming that no answer is
// cached.
type Preview struct {
	// Files are the files of the change, in its order.
	Files []FilePreview `json:"files"`
	// Chunks are the calls.
	Chunks []ChunkPreview `json:"chunks"`
	// Tokens is the largest number of tokens that the calls may use.
	Tokens int `json:"tokens"`
	// Budget is the limit of tokens of one review.
	Budget int `json:"budget"`
	// Rules are the names of the rule packs in the prompt, in order of precedence,
	// and RulesLeftOut of those that do not fit.
	Rules        []string `json:"rules"`
	RulesLeftOut []string `json:"rules_left_out,omitempty"`
}

// A FilePreview is one file of a [Preview].
type FilePreview struct {
	Path   string        `json:"path"` // redacted
	Action review.Action `json:"action"`
	// Reason is why the file is not reviewed in full; empty if it is.
	Reason review.SkipReason `json:"reason,omitempty"`
	// Rules is the rule pack for the file, empty for none.
	Rules string `json:"rules,omitempty"`
	// Tokens is the size of the file's diff, and Chunks the numbers of the calls
	// that show it, from 1.
	Tokens int   `json:"tokens"`
	Chunks []int `json:"chunks,omitempty"`
}

// A ChunkPreview is one call of a [Preview].
type ChunkPreview struct {
	Files []string `json:"files"` // redacted paths
	// Tokens is the size of the chunk, without the instructions.
	Tokens int `json:"tokens"`
	// PromptTokens is the size of the whole prompt.
	PromptTokens int `json:"prompt_tokens"`
}

// Preview divides c into calls as a review would, without making them.
func (r *Reviewer) Preview(ctx context.Context, c redaction.Change) (Preview, error) {
	if err := r.guard.Verify(c); err != nil {
		return Preview{}, fmt.Errorf("preview changelist %d: %w", c.Number, err)
	}
	run, err := r.newRun(ctx, c, review.Options{})
	if err != nil {
		return Preview{}, err
	}
	out := Preview{
		Files: make([]FilePreview, len(c.Files)), Chunks: []ChunkPreview{}, Budget: r.cfg.MaxTokensPerReview,
		Tokens: r.cfg.MaxTokensPerReview - run.left, Rules: run.guide.packs, RulesLeftOut: run.guide.left,
	}
	at := map[*file]*FilePreview{}
	for i, f := range c.Files {
		out.Files[i] = FilePreview{Path: f.Path.String(), Action: f.Action, Reason: run.omission(i)}
		if file := run.files[i]; file != nil {
			at[file] = &out.Files[i]
			at[file].Tokens = section{file, file.hunks}.tokens()
			at[file].Rules = r.guidelines.packOf(file.path)
		}
	}
	for n, t := range run.tasks {
		call := ChunkPreview{Tokens: t.tokens(), PromptTokens: run.fixed + t.tokens()}
		for _, s := range t.chunk {
			call.Files = append(call.Files, s.file.path)
			at[s.file].Chunks = append(at[s.file].Chunks, n+1)
		}
		out.Chunks = append(out.Chunks, call)
	}
	return out, nil
}
