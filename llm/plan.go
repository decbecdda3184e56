package llm

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A task is a chunk to review and the tokens set aside for it: 0 if its answer is
// cached.
type task struct {
	question
	setAside int
	splits   int // how often a larger part was split to it
}

// newRun divides c into calls.
func (r *Reviewer) newRun(ctx context.Context, c redaction.Change, o review.Options) (*run, error) {
	limit := r.promptLimit()
	run := &run{
		Reviewer: r,
		options:  o,
		change:   c,
		about:    about(c, limit),
		fence:    newNonce(),
		files:    make([]*file, len(c.Files)),
		left:     max(0, r.cfg.MaxTokensPerReview-o.Spent),
		counts:   newRemarkCounts(),
		model:    r.cfg.Model,
	}
	var parsing errgroup.Group // counting tokens takes seconds for the largest changes
	parsing.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range c.Files {
		if f.Skipped != "" || f.Diff.String() == "" {
			continue
		}
		parsing.Go(func() (err error) {
			if run.files[i], err = parseFile(f); err != nil {
				return fmt.Errorf("lay out file %d of changelist %d: %w", i+1, c.Number, err)
			}
			return nil
		})
	}
	err := parsing.Wait()
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(slices.Clone(run.files), func(f *file) bool { return f == nil })
	run.blocks = newBlocks(c, run.files)
	if run.guides, run.sources, err = r.guidelines.with(r.guard.String, c.Rules); err != nil {
		return nil, err
	}
	run.guide = run.guides.guide(shown, limit-minPromptTokens)
	if len(run.guide.left) > 0 {
		r.lg.WarnContext(ctx, "rule packs left out: no room in the prompt", "changelist", c.Number, "packs", run.guide.left)
	}
	run.system = r.prompts.withRules(run.guide)
	return run, run.plan(ctx, shown, limit)
}

// nonceTokens bounds the tokens of the fence, which is there three times in a review and nine
// times with a pack and findings, and of the last code, which is there twice: each hex digit may
// be a token. Counted, they would differ from review to review, and the chunks would end elsewhere: no
// cached answer would be found.
const nonceTokens = 9*32 + 2*8

// plan packs files into chunks and sets tokens aside for those that the budget
// has room for. The layout depends on the whole budget and not on what is left of
// it, so that it is the same in every attempt.
func (run *run) plan(ctx context.Context, files []*file, limit int) error {
	var frame strings.Builder
	if err := messages.Execute(&frame, userMessage{Text: run.about}); err != nil {
		return failure.Errorf(failure.InvariantViolated, "render the prompt: %w", err)
	}
	run.fixed = countTokens(run.system) + countTokens(frame.String()) + nonceTokens
	run.room = limit - run.fixed
	run.room -= codeTokens(run.room)
	want, reserve := 0, 0 // up to a third of each prompt, but not of a small one, is for code around the change
	for _, b := range run.blocks {
		if run.cfg.ReviewContext.covers(b.tier) {
			want += section{b.file, b.hunks}.tokens()
		}
	}
	if limit >= 2*minPromptTokens {
		reserve = min(want, run.room/3)
	}
	calls := run.cfg.MaxTokensPerReview / (limit + run.cfg.MaxAnswerTokens)
	chunks := pack(files, run.room-reserve, calls*(run.room-reserve))
	if len(chunks) > calls && reserve > 0 {
		chunks = pack(files, run.room, calls*run.room)
	}
	spare := run.cfg.MaxTokensPerReview
	for _, c := range chunks {
		spare -= run.fixed + run.cfg.MaxAnswerTokens + c.tokens() + codeTokens(c.tokens())
	}
	for _, c := range chunks {
		q := question{list: listFindings, about: run.about, part: c}
		q.context, q.use = run.contextOf(c, run.cfg.ReviewContext, min(run.room-c.tokens(), spare)-codeTokens(0), nil)
		spare -= q.context.tokens()
		if t, ok := run.newTask(ctx, q); ok {
			run.tasks = append(run.tasks, t)
		}
	}
	return nil
}

// newTask sets tokens aside for q unless its answer is cached. If the budget has too few
// tokens left, the context of q is left out, then its files.
func (run *run) newTask(ctx context.Context, q question) (task, bool) {
	t := task{question: q}
	if _, cached := run.cached(ctx, q); !cached {
		t.setAside = run.maxTokens(q, run.cfg.MaxAnswerTokens)
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if t.setAside > run.left && q.context != nil {
		t.question = q.withoutContext()
		t.setAside = run.maxTokens(t.question, run.cfg.MaxAnswerTokens)
	}
	if t.setAside > run.left {
		run.omitted = append(run.omitted, omission{q.part, review.SkipOverBudget, nil})
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
