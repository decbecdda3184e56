package llm

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A task is a chunk to review with the tokens set aside for it: none if its
// answer is kept.
type task struct {
	chunk
	prepaid int
}

// begin lays c out over calls.
func (r *Reviewer) begin(ctx context.Context, c redaction.Change, o review.Options) (*run, error) {
	run := &run{
		Reviewer: r,
		options:  o,
		change:   c,
		about:    about(c),
		files:    make([]*file, len(c.Files)),
		left:     max(0, r.cfg.MaxTokensPerReview-o.Spent),
		unseen:   map[*file]review.SkipReason{},
		counts:   newTally(),
		known:    map[string]kept{},
		model:    r.cfg.Model,
		another:  map[string]*review.Switch{},
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
	run.guide = r.guidelines.guide(shown, r.cfg.MaxPromptTokens-minPromptTokens)
	if len(run.guide.left) > 0 {
		r.lg.WarnContext(ctx, "rules left out: they find no room in the prompt", "changelist", c.Number, "packs", run.guide.left)
	}
	run.system = r.instructions(run.guide)
	return run, run.plan(ctx, shown)
}

// instructions are the same in all calls of a review.
func (r *Reviewer) instructions(g guide) map[AnswerFormat]string {
	system := map[AnswerFormat]string{}
	for format, p := range r.prompts {
		system[format] = p.with(g)
	}
	return system
}

// prompt is what asks in the format that is configured.
func (r *Reviewer) prompt() *prompts { return r.prompts[r.cfg.AnswerFormat] }

// digest tells which instructions the review is made with.
func (run *run) digest() string {
	system := run.system[run.cfg.AnswerFormat]
	if run.cfg.Falsify != FalsifyOff {
		system += run.falsify.system[run.cfg.AnswerFormat]
	}
	return run.prompt().digest(system)
}

// plan packs files into chunks and sets aside what the budget has room for. The
// layout goes by the whole budget, so that it is the same in every attempt.
func (run *run) plan(ctx context.Context, files []*file) error {
	empty, err := run.prompt().user(run.text(nil))
	if err != nil {
		return err
	}
	prompt := countTokens(run.system[run.cfg.AnswerFormat]) + countTokens(findingsSchema) + countTokens(empty)
	run.fixed = prompt + run.cfg.MaxAnswerTokens
	room := run.cfg.MaxPromptTokens - prompt
	calls := run.cfg.MaxTokensPerReview / (run.fixed + room)
	for _, c := range pack(files, room, calls*room) {
		if _, ok := run.answered(ctx, run.reviewOf(c)); ok {
			run.total++
			run.work = append(run.work, task{chunk: c})
		} else if tokens, ok := run.reserve(c); ok {
			run.work = append(run.work, task{c, tokens})
		}
	}
	return nil
}

// reserve sets the tokens of a call for c aside. If they are not there, the
// files of c count as not seen.
func (run *run) reserve(c chunk) (tokens int, ok bool) {
	tokens = run.cost(run.reviewOf(c))
	run.mu.Lock()
	defer run.mu.Unlock()
	if tokens > run.left {
		run.miss(c, review.SkipOverBudget)
		return 0, false
	}
	run.left -= tokens
	run.total++
	return tokens, true
}

// cost is the most that one call for q may use.
func (run *run) cost(q question) int { return run.fixed + countTokens(q.shown) }

// give adds tokens to what is left of the review's budget.
func (run *run) give(tokens int) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.left += tokens
}

// miss notes that c is not seen. The caller holds the lock.
func (run *run) miss(c chunk, why review.SkipReason) {
	for _, s := range c {
		run.unseen[s.file] = why
	}
}
