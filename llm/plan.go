package llm

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

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
		coverage: make(review.Coverage, len(c.Files)),
		left:     max(0, r.cfg.MaxTokensPerReview-o.Spent),
		counts:   newRemarkCounts(),
		model:    r.cfg.Model,
	}
	var parsing errgroup.Group // counting tokens takes seconds for the largest changes
	parsing.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range c.Files {
		run.coverage[i] = review.NewFileCoverage(f.Path.String(), f.Diff.String(), f.Skipped)
		if f.Skipped != "" || f.Diff.String() == "" {
			continue
		}
		parsing.Go(func() (err error) {
			if run.files[i], err = parseFile(f); err != nil {
				return fmt.Errorf("lay out file %d of changelist %d: %w", i+1, c.Number, err)
			}
			run.files[i].coverage = &run.coverage[i]
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
	run.plan(ctx, shown, limit)
	return run, nil
}

// nonceTokens bounds the tokens of the fence, which is there three times in a review and nine
// times with a pack and findings, and of the last code, which is there twice: each hex digit may
// be a token. Counted, they would differ from review to review, and the chunks would end elsewhere: no
// cached answer would be found.
const nonceTokens = 9*32 + 2*8

// plan packs files into chunks and selects those that the budget has room for. If it has too few
// tokens, the context of a chunk is left out, then the chunk. The layout depends on the whole budget
// and not on what is left of it, so that it is the same in every attempt.
func (run *run) plan(ctx context.Context, files []*file, limit int) {
	run.fixed = countTokens(run.system) + countTokens(render(messages, userMessage{Text: run.about})) + nonceTokens
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
	left, spare := run.left, run.cfg.MaxTokensPerReview
	for _, c := range chunks {
		spare -= run.fixed + run.cfg.MaxAnswerTokens + c.tokens() + codeTokens(c.tokens())
	}
	for _, c := range chunks {
		q := question{list: listFindings, about: run.about, part: c}
		q.context, q.use = run.contextOf(c, run.cfg.ReviewContext, min(run.room-c.tokens(), spare)-codeTokens(0), nil)
		spare -= q.context.tokens()
		need := 0
		if _, cached := run.cached(ctx, q); !cached {
			need = run.maxTokens(q, run.cfg.MaxAnswerTokens)
		}
		if need > left && q.context != nil {
			q = q.withoutContext()
			need = run.maxTokens(q, run.cfg.MaxAnswerTokens)
		}
		if need > left {
			run.leaveOut(c, review.SkipOverBudget, nil)
			continue
		}
		left -= need
		run.tasks = append(run.tasks, q)
	}
	run.total = len(run.tasks)
}

// maxTokens returns the largest number of tokens that one call for q, with that limit
// of its answer, may use.
func (run *run) maxTokens(q question, limit int) int {
	return run.fixed + limit + countTokens(q.key())
}
