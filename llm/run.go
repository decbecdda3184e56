package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A run is one review under way.
type run struct {
	*Reviewer
	options review.Options
	change  redaction.Change
	about   string                  // rendered description and jobs, part of every prompt
	guide   guide                   // the rules for the change
	system  map[AnswerFormat]string // instructions, with these rules
	files   []*file                 // as change.Files; nil where there is nothing to review
	work    []task                  // what the review's budget has room for
	fixed   int                     // tokens of a call without its chunk, its answer included
	failed  atomic.Bool             // no other call is begun

	mu      sync.Mutex // guards what follows
	left    int        // tokens of the review's budget
	done    int
	total   int
	tooLong error                       // of the last call that was split
	unseen  map[*file]review.SkipReason // found no room in a budget, in part at least
	parts   []chunk                     // those that were reviewed
	found   []candidate
	counts  tally
	known   map[string]kept // answers by their key
	usage   review.Usage
	model   string
	another map[string]*review.Switch // by the model that was asked instead
}

// text is what a call for c shows.
func (run *run) text(c chunk) string { return run.about + c.render() }

// A reading is what an answer about a chunk comes to.
type reading struct {
	Findings []review.Finding `json:"findings"`
	tally
}

// reviewOf asks for the findings in c.
func (run *run) reviewOf(c chunk) question {
	text := run.text(c)
	return question{
		system: run.system,
		user:   func() (string, error) { return run.prompt().user(text) },
		shown:  text,
		name:   "findings",
		schema: findingsSchema,
		read: func(content string) (json.RawMessage, error) {
			remarks, err := run.parse(content)
			if err != nil {
				return nil, err
			}
			found, counts := c.findings(remarks)
			if found, err = run.guard.Findings(found); err != nil {
				return nil, fmt.Errorf("redact findings: %w", err)
			}
			return json.Marshal(reading{found, counts})
		},
	}
}

// reviewAll makes the calls. When one fails, those under way are let finish,
// for they are paid for, and no other is begun. When every prompt was too long
// until the budget was spent, that is the error: the limits are set wrong.
func (run *run) reviewAll(ctx context.Context) error {
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, t := range run.work {
		calls.Go(func() (err error) {
			defer run.end(&err)
			return run.reviewPart(ctx, t)
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	if len(run.parts) == 0 {
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

// reviewPart has one chunk reviewed, in halves if the endpoint finds it too long
// or is known to.
func (run *run) reviewPart(ctx context.Context, t task) error {
	if run.failed.Load() {
		return nil
	}
	q := run.reviewOf(t.chunk)
	first, second, splits := t.split()
	if splits && run.recall(ctx, run.key(run.cfg.Model, q)).TooLong {
		run.give(t.prepaid)
		return run.reviewHalves(ctx, first, second, nil)
	}
	answer, err := run.ask(ctx, q, t.prepaid)
	over, unpaid := errors.AsType[overBudgetError](err)
	switch {
	case err == nil:
		return run.keep(t.chunk, answer)
	case unpaid:
		run.skip(t.chunk, over.reason)
		return nil
	case failure.ClassOf(err) == failure.TooLarge && splits:
		run.lg.InfoContext(ctx, "split a prompt the endpoint found too long", "changelist", run.change.Number)
		return run.reviewHalves(ctx, first, second, err)
	}
	return err
}

func (run *run) reviewHalves(ctx context.Context, first, second chunk, tooLong error) error {
	run.step(tooLong)
	for _, half := range []chunk{first, second} {
		if _, ok := run.answered(ctx, run.reviewOf(half)); ok {
			run.mu.Lock()
			run.total++
			run.mu.Unlock()
			if err := run.reviewPart(ctx, task{chunk: half}); err != nil {
				return err
			}
		} else if tokens, ok := run.reserve(half); ok {
			if err := run.reviewPart(ctx, task{half, tokens}); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep takes over the answer about c.
func (run *run) keep(c chunk, answer json.RawMessage) error {
	var r reading
	if err := json.Unmarshal(answer, &r); err != nil {
		return failure.Errorf(failure.InvariantViolated, "read kept answer: it is not ours")
	}
	run.mu.Lock()
	for _, f := range r.Findings {
		run.found = append(run.found, candidate{Finding: f, part: len(run.parts)})
	}
	run.parts = append(run.parts, c)
	run.counts.add(r.tally)
	run.mu.Unlock()
	run.step(nil)
	return nil
}

// skip notes that c was not reviewed.
func (run *run) skip(c chunk, why review.SkipReason) {
	run.mu.Lock()
	run.miss(c, why)
	run.mu.Unlock()
	run.step(nil)
}

// step counts a part that is done, tooLong if it was split.
func (run *run) step(tooLong error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if tooLong != nil {
		run.tooLong = tooLong
	}
	run.done++
	if progress := run.options.Progress; progress != nil {
		progress(run.done, run.total)
	}
}

// spend counts what a call used; model is what answered, and own whether that
// is the one configured first.
func (run *run) spend(u review.Usage, model string, own bool) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.usage = run.usage.Add(u)
	if model != "" && (own || run.model == run.cfg.Model) {
		run.model = model
	}
}

// switched notes that model answered in place of the one configured.
func (run *run) switched(ctx context.Context, model string, cause error) {
	class := string(failure.ClassOf(cause))
	run.lg.WarnContext(ctx, "another model answered", "changelist", run.change.Number, "model", model, "error_class", class)
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.another[model] == nil {
		run.another[model] = &review.Switch{From: run.cfg.Model, To: model, Why: class}
	}
	run.another[model].Calls++
}
