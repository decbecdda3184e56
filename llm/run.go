package llm

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A run is one review under way.
type run struct {
	*Reviewer
	change   redaction.Change
	about    string  // rendered description and jobs, part of every prompt
	files    []*file // as change.Files; nil where there is nothing to review
	chunks   []chunk // those the review's budget has room for
	fixed    int     // tokens of a call without its chunk, its answer included
	progress func(done, total int)
	failed   atomic.Bool // no other call is begun

	mu       sync.Mutex // guards what follows
	left     int        // tokens of the review's budget
	done     int
	total    int
	tooLong  error          // of the last call that was split
	unseen   map[*file]bool // found no room in the budget, in part at least
	findings []review.Finding
	dropped  int // findings on paths that were not shown
	asked    []memoKey
	usage    review.Usage
	model    string
}

// begin lays c out over calls.
func (r *Reviewer) begin(c redaction.Change, progress func(done, total int)) (*run, error) {
	run := &run{
		Reviewer: r,
		change:   c,
		about:    about(c),
		files:    make([]*file, len(c.Files)),
		progress: progress,
		left:     r.cfg.MaxTokensPerReview,
		unseen:   map[*file]bool{},
		model:    r.cfg.Model,
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
	return run, run.plan(shown)
}

// plan packs files into chunks and reserves what the budget has room for.
func (run *run) plan(files []*file) error {
	empty, err := run.prompts.user(run.text(nil))
	if err != nil {
		return err
	}
	prompt := countTokens(run.prompts.system) + countTokens(findingsSchema) + countTokens(empty)
	run.fixed = prompt + run.cfg.MaxAnswerTokens
	for _, c := range pack(files, run.cfg.MaxPromptTokens-prompt) {
		if run.reserve(c) {
			run.chunks = append(run.chunks, c)
		}
	}
	return nil
}

// reserve takes the tokens of a call for c out of the review's budget. If they
// are not there, the files of c count as not seen.
func (run *run) reserve(c chunk) bool {
	tokens := run.fixed + countTokens(c.render())
	run.mu.Lock()
	defer run.mu.Unlock()
	if tokens > run.left {
		for _, s := range c {
			run.unseen[s.file] = true
		}
		return false
	}
	run.left -= tokens
	run.total++
	return true
}

// text is what a call for c shows.
func (run *run) text(c chunk) string { return run.about + c.render() }

// reviewAll makes the calls. When one fails, those under way are let finish,
// for they are paid for, and no other is begun. When every prompt was too long
// until the budget was spent, that is the error: the limits are set wrong.
func (run *run) reviewAll(ctx context.Context) error {
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, c := range run.chunks {
		calls.Go(func() (err error) {
			defer run.end(&err)
			return run.review(ctx, c)
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	if len(run.asked) == 0 {
		return run.tooLong
	}
	return nil
}

// end is deferred by every goroutine: after an error no other call is begun. A
// panic, which nobody else could stop there, becomes an error; its value may
// hold content, so only its type is told.
func (run *run) end(err *error) {
	if p := recover(); p != nil {
		*err = failure.Errorf(failure.InvariantViolated, "panic (%T) in review of a chunk\n%s", p, debug.Stack())
	}
	if *err != nil {
		run.failed.Store(true)
	}
}

// review has one chunk reviewed, in halves if the endpoint finds it too long.
func (run *run) review(ctx context.Context, c chunk) error {
	if run.failed.Load() {
		return nil
	}
	a, err := run.ask(ctx, run.text(c))
	if err == nil {
		run.keep(c, a)
		return nil
	}
	first, second, ok := c.split()
	if failure.ClassOf(err) != failure.TooLarge || !ok {
		return err
	}
	run.lg.InfoContext(ctx, "split a prompt the endpoint found too long", "changelist", run.change.Number)
	run.step(a, err)
	for _, half := range []chunk{first, second} {
		if run.reserve(half) {
			if err := run.review(ctx, half); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep takes over what a call brought.
func (run *run) keep(c chunk, a answer) {
	found, dropped := c.findings(a.remarks)
	run.mu.Lock()
	run.findings = append(run.findings, found...)
	run.dropped += dropped
	run.asked = append(run.asked, keyOf(run.text(c)))
	run.mu.Unlock()
	run.step(a, nil)
}

// step counts a call that is done, tooLong if it was split.
func (run *run) step(a answer, tooLong error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if tooLong != nil {
		run.tooLong = tooLong
	}
	run.usage.Calls += a.usage.Calls
	run.usage.PromptTokens += a.usage.PromptTokens
	run.usage.CompletionTokens += a.usage.CompletionTokens
	if a.model != "" {
		run.model = a.model
	}
	run.done++
	if run.progress != nil {
		run.progress(run.done, run.total)
	}
}

// draft sums up a run whose calls have all succeeded. Every file is either
// read or omitted.
func (run *run) draft() review.Draft {
	d := review.Draft{
		Findings:     inOrder(run.findings),
		Model:        run.model,
		PromptDigest: run.prompts.digest,
		Usage:        run.usage,
	}
	for i, f := range run.change.Files {
		if reason := run.omission(i); reason != "" {
			d.Omissions = append(d.Omissions, review.Omission{Path: f.Path.String(), Reason: reason})
		} else {
			d.FilesRead++
		}
	}
	return d
}

// omission says why file i was not read whole, empty if it was.
func (run *run) omission(i int) review.SkipReason {
	f := run.files[i]
	switch {
	case run.change.Files[i].Skipped != "":
		return run.change.Files[i].Skipped
	case f == nil:
		return review.SkipUnchanged
	case run.unseen[f]:
		return review.SkipOverBudget
	case f.cut:
		return review.SkipTooLarge
	}
	return ""
}
