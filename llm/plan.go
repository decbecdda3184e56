package llm

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A task is a chunk to review and the tokens set aside for it: 0 if its answer is
// cached.
type task struct {
	chunk
	setAside int
	splits   int // how often a larger part was split to it
}

// newRun divides c into calls.
func (r *Reviewer) newRun(ctx context.Context, c redaction.Change, o review.Options) (*run, error) {
	run := &run{
		Reviewer: r,
		options:  o,
		change:   c,
		about:    about(c),
		fence:    newNonce(),
		files:    make([]*file, len(c.Files)),
		left:     max(0, r.cfg.MaxTokensPerReview-o.Spent),
		omitted:  map[*file]review.SkipReason{},
		counts:   newTally(),
		model:    r.cfg.Model,
		switches: map[string]*review.Switch{},
	}
	var shown []*file
	for i, f := range c.Files {
		if f.Skipped != "" || f.Diff.String() == "" {
			continue
		}
		file, err := newFile(f)
		if err != nil {
			return nil, fmt.Errorf("lay out file %d of changelist %d: %w", i+1, c.Number, err)
		}
		run.files[i] = file
		shown = append(shown, file)
	}
	run.guide = r.guidelines.guide(shown, r.promptLimit()-minPromptTokens)
	if len(run.guide.left) > 0 {
		r.lg.WarnContext(ctx, "rule packs left out: no room in the prompt", "changelist", c.Number, "packs", run.guide.left)
	}
	run.system = r.prompts.withRules(run.guide)
	return run, run.plan(ctx, shown)
}

// plan packs files into chunks and sets tokens aside for those that the budget
// has room for. The layout depends on the whole budget and not on what is left of
// it, so that it is the same in every attempt.
func (run *run) plan(ctx context.Context, files []*file) error {
	w := wire{Dialect: Dialect{Format: run.cfg.AnswerFormat}, inPrompt: true}
	empty, err := run.prompt(w, question{about: run.about}, "")
	if err != nil {
		return err
	}
	run.fixed = empty.tokens
	limit := run.promptLimit()
	room := limit - run.fixed
	room -= codeTokens(room)
	calls := run.cfg.MaxTokensPerReview / (limit + run.cfg.MaxAnswerTokens)
	for _, c := range pack(files, room, calls*room) {
		if t, ok := run.newTask(ctx, c); ok {
			run.tasks = append(run.tasks, t)
		}
	}
	return nil
}

// newTask sets tokens aside for c unless its answer is cached. If the budget has
// too few tokens left, the files of c are omitted.
func (run *run) newTask(ctx context.Context, c chunk) (task, bool) {
	q := run.reviewOf(c)
	t := task{chunk: c}
	if _, cached := run.cachedFromAny(ctx, q); !cached {
		t.setAside = run.maxTokens(q, run.cfg.MaxAnswerTokens)
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if t.setAside > run.left {
		run.omit(c, review.SkipOverBudget)
		return task{}, false
	}
	run.left -= t.setAside
	run.total++
	return t, true
}

// maxTokens returns the largest number of tokens that one call for q, with that limit
// of its answer, may use.
func (run *run) maxTokens(q question, limit int) int {
	return run.fixed + limit + countTokens(q.key())
}

// omit records that c is not shown to the model. The caller holds the lock.
func (run *run) omit(c chunk, why review.SkipReason) {
	for _, s := range c {
		run.omitted[s.file] = why
	}
}
