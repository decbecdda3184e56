package llm

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Preview is how a change would be reviewed, if no answer is kept from
// earlier. It goes into reports of operators as it is.
type Preview struct {
	// Files are those of the change, in its order.
	Files []FilePreview `json:"files"`
	// Chunks are the calls, in their order.
	Chunks []ChunkPreview `json:"chunks"`
	// Tokens is the most that the calls use, with their longest answers.
	Tokens int `json:"tokens"`
	// Budget is the limit of one review.
	Budget int `json:"budget"`
	// Rules names the packs that go along, in the order in which they are tried,
	// and RulesLeftOut those that find no room in the prompt.
	Rules        []string `json:"rules"`
	RulesLeftOut []string `json:"rules_left_out,omitempty"`
}

// A FilePreview is what becomes of one file.
type FilePreview struct {
	Path   string        `json:"path"` // redacted
	Action review.Action `json:"action"`
	// Reason says why it is not reviewed, or not whole; empty if it is.
	Reason review.SkipReason `json:"reason,omitempty"`
	// Rules is the pack that counts for it, empty for none.
	Rules string `json:"rules,omitempty"`
	// Tokens is the size of all there is to show of it, and Chunks says in which
	// calls it is shown, counted from 1.
	Tokens int   `json:"tokens"`
	Chunks []int `json:"chunks,omitempty"`
}

// A ChunkPreview is one call.
type ChunkPreview struct {
	Files []string `json:"files"` // redacted paths
	// Tokens is the size of what is shown, without the instructions.
	Tokens int `json:"tokens"`
	// PromptTokens is the size of all that is sent.
	PromptTokens int `json:"prompt_tokens"`
}

// Preview lays c out over calls as a review would, and makes none.
func (r *Reviewer) Preview(ctx context.Context, c redaction.Change) (Preview, error) {
	if err := r.guard.Verify(c); err != nil {
		return Preview{}, fmt.Errorf("preview changelist %d: %w", c.Number, err)
	}
	run, err := r.begin(ctx, c, review.Options{})
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
			pack, _, _ := r.guidelines.book.For(file.path)
			at[file].Rules = pack.Name
		}
	}
	for n, t := range run.work {
		call := ChunkPreview{Tokens: t.tokens(), PromptTokens: run.fixed - r.cfg.MaxAnswerTokens + t.tokens()}
		for _, s := range t.chunk {
			call.Files = append(call.Files, s.file.path)
			at[s.file].Chunks = append(at[s.file].Chunks, n+1)
		}
		out.Chunks = append(out.Chunks, call)
	}
	return out, nil
}
