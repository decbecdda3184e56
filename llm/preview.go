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
	// Coverage is what the calls would read.
	Coverage review.Coverage `json:"-"`
	// Chunks are the calls.
	Chunks []ChunkPreview `json:"chunks"`
	// Tokens is the largest number of tokens that the calls may use.
	Tokens int `json:"tokens"`
	// Budget is the limit of tokens of one review.
	Budget int `json:"budget"`
	// Rules are the names of the rule packs in the prompt, in order of precedence, and
	// RulesLeftOut the names of packs that do not fit.
	Rules        []string `json:"rules"`
	RulesLeftOut []string `json:"rules_left_out,omitempty"`
}

// A FilePreview is one file of a [Preview].
type FilePreview struct {
	Path   string        `json:"path"` // redacted
	Action review.Action `json:"action"`
	// Reason is why the file is not reviewed in full; empty if it is.
	Reason review.SkipReason `json:"reason,omitempty"`
	// Rules are the rule packs for the file, joined by +, empty for none.
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
	// PromptTokens is the size of the whole prompt, and ContextTokens the size of the
	// code around the change in it.
	PromptTokens  int `json:"prompt_tokens"`
	ContextTokens int `json:"context_tokens"`
	// Prompts has the prompt of the review and of a verification. The findings in the
	// latter are an example.
	Prompts []PromptPreview `json:"prompts,omitempty"`
}

// A PromptPreview is what one call sends. Only fence and check codes differ in every call.
type PromptPreview struct {
	Task   string `json:"task"` // review or verify
	System string `json:"system"`
	User   string `json:"user"`
}

// Preview divides c into calls as a review would, without making them. With prompts it
// renders what they would send.
func (r *Reviewer) Preview(ctx context.Context, c redaction.Change, prompts bool) (Preview, error) {
	if err := r.guard.Verify(c); err != nil {
		return Preview{}, fmt.Errorf("preview changelist %d: %w", c.Number, err)
	}
	run, err := r.newRun(ctx, c, review.Options{})
	if err != nil {
		return Preview{}, err
	}
	out := Preview{
		Files: make([]FilePreview, len(c.Files)), Chunks: []ChunkPreview{}, Budget: r.cfg.MaxTokensPerReview,
		Rules: run.guide.packs, RulesLeftOut: run.guide.left,
	}
	for _, q := range run.tasks {
		q.part.mark(review.LinesShown, "")
		out.Tokens += run.maxTokens(q, r.cfg.MaxAnswerTokens)
	}
	at := map[*file]*FilePreview{}
	out.Coverage = run.finishCoverage()
	for i, f := range c.Files {
		out.Files[i] = FilePreview{Path: f.Path.String(), Action: f.Action}
		_, out.Files[i].Reason = out.Coverage[i].Worst()
		if file := run.files[i]; file != nil {
			at[file] = &out.Files[i]
			at[file].Tokens, at[file].Rules = section{file, file.hunks}.tokens(), run.guides.packsOf(file.path)
		}
	}
	for n, q := range run.tasks {
		call := ChunkPreview{Tokens: q.part.tokens(), PromptTokens: run.fixed + q.shown().tokens(), ContextTokens: q.context.tokens()}
		if prompts {
			if call.Prompts, err = run.previewPrompts(q); err != nil {
				return Preview{}, err
			}
		}
		for _, s := range q.part {
			call.Files = append(call.Files, s.file.path)
			at[s.file].Chunks = append(at[s.file].Chunks, n+1)
		}
		out.Chunks = append(out.Chunks, call)
	}
	return out, nil
}

// previewPrompts renders the calls for q: its review and, if findings may be verified, a
// verification with one finding in each file.
func (run *run) previewPrompts(q question) ([]PromptPreview, error) {
	questions := []question{q}
	if run.cfg.Verify != VerifyOff {
		var found []candidate
		for _, s := range q.part {
			found = append(found, candidate{Finding: review.Finding{Path: s.file.path, Severity: review.SeverityCritical, Title: "(a finding of the review)"}})
		}
		run.parts = []question{q}
		questions = append(questions, run.verifications(found)...)
	}
	tasks := map[string]string{listFindings: "review", listVerdicts: "verify"}
	var out []PromptPreview
	for _, q := range questions {
		p, err := run.prompt(q, "")
		if err != nil {
			return nil, err
		}
		out = append(out, PromptPreview{Task: tasks[q.list], System: p.system.String(), User: p.user.String()})
	}
	return out, nil
}
