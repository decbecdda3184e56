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

// A run is one review in progress.
type run struct {
	*Reviewer
	options review.Options
	change  redaction.Change
	about   string                  // rendered description and jobs, part of every prompt
	guide   guide                   // rules for the change
	system  map[AnswerFormat]string // instructions with these rules
	files   []*file                 // as change.Files; nil if there is nothing to review
	tasks   []task                  // that the review's budget has room for
	fixed   int                     // tokens of a call without its chunk, including the answer
	failed  atomic.Bool             // a call failed: no other one is started
	answers sync.Map                // cachedAnswer by key

	mu       sync.Mutex // guards the fields below
	left     int        // tokens of the review's budget
	done     int
	total    int
	tooLong  error                       // of the last call that was split
	omitted  map[*file]review.SkipReason // files that found no room in a budget, in part at least
	parts    []chunk                     // that were reviewed
	found    []candidate
	counts   tally
	usage    review.Usage
	model    string
	switches map[string]*review.Switch // by the model that answered instead
}

// A result is what the answer about a chunk amounts to.
type result struct {
	Findings []review.Finding `json:"findings"`
	tally
}

// reviewOf returns the question for the findings in c.
func (run *run) reviewOf(c chunk) question {
	return question{
		prompts: run.findings,
		system:  run.system,
		text:    run.about + c.render(),
		read: func(content string) (json.RawMessage, error) {
			remarks, err := run.parseFindings(content)
			if err != nil {
				return nil, err
			}
			found, counts := c.findings(remarks)
			if found, err = run.guard.Findings(found); err != nil {
				return nil, fmt.Errorf("redact findings: %w", err)
			}
			return json.Marshal(result{found, counts})
		},
	}
}

// reviewAll makes the calls. If one fails, calls in progress run to completion,
// because they are already billed, and no other one is started. If every prompt
// was too long until the budget was used up, it returns that error: the limits
// are wrong.
func (run *run) reviewAll(ctx context.Context) error {
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, t := range run.tasks {
		calls.Go(func() (err error) {
			defer run.recoverInto(&err)
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

// recoverInto is deferred by every goroutine. It turns a panic into an error with
// the type of the panic's value only, because the value may hold content; after
// an error no other call is started.
func (run *run) recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = failure.Errorf(failure.InvariantViolated, "panic (%T) in review of a chunk\n%s", p, debug.Stack())
	}
	if *err != nil {
		run.failed.Store(true)
	}
}

// reviewPart reviews one chunk, in halves if the endpoint finds the prompt too
// long, now or in an earlier attempt.
func (run *run) reviewPart(ctx context.Context, t task) error {
	if run.failed.Load() {
		return nil
	}
	q := run.reviewOf(t.chunk)
	first, second, splits := t.split()
	if splits && run.cached(ctx, run.cacheKey(run.cfg.Model, q)).TooLong {
		run.giveBack(t.setAside)
		return run.reviewHalves(ctx, first, second, nil)
	}
	answer, err := run.ask(ctx, q, t.setAside)
	overBudget, isOver := errors.AsType[overBudgetError](err)
	switch {
	case err == nil:
		return run.add(t.chunk, answer)
	case isOver:
		run.mu.Lock()
		run.omit(t.chunk, overBudget.reason)
		run.mu.Unlock()
		run.step(nil)
		return nil
	case failure.ClassOf(err) == failure.TooLarge && splits:
		run.lg.InfoContext(ctx, "split a prompt that the endpoint found too long", "changelist", run.change.Number)
		return run.reviewHalves(ctx, first, second, err)
	}
	return err
}

func (run *run) reviewHalves(ctx context.Context, first, second chunk, tooLong error) error {
	run.step(tooLong)
	for _, half := range []chunk{first, second} {
		if t, ok := run.newTask(ctx, half); ok {
			if err := run.reviewPart(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the answer about c to the results.
func (run *run) add(c chunk, answer json.RawMessage) error {
	var r result
	if err := json.Unmarshal(answer, &r); err != nil {
		return failure.Errorf(failure.InvariantViolated, "decode cached answer: not in the format of this version")
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

// step reports that a call is done; tooLong is its error if it was split.
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

// addUsage adds the usage of a call. model is the name of the model that answered,
// and primary whether it is the first of the configuration.
func (run *run) addUsage(u review.Usage, model string, primary bool) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.usage = run.usage.Add(u)
	if model != "" && (primary || run.model == run.cfg.Model) {
		run.model = model
	}
}

// switched records that a fallback model answered instead of the first one.
func (run *run) switched(ctx context.Context, model string, cause error) {
	class := string(failure.ClassOf(cause))
	run.lg.WarnContext(ctx, "fallback model answered", "changelist", run.change.Number, "model", model, "error_class", class)
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.switches[model] == nil {
		run.switches[model] = &review.Switch{From: run.cfg.Model, To: model, Why: class}
	}
	run.switches[model].Calls++
}
