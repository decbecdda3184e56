package llm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A run is one review in progress.
type run struct {
	*Reviewer
	options review.Options
	change  redaction.Change
	about   string              // description, jobs and list of files, part of every prompt
	guides  *guidelines         // those of the reviewer and of teams
	sources []review.RuleSource // of the rules of teams
	guide   guide               // rules for the change
	system  string              // instructions with these rules
	fence   string              // around the change, in all calls of the review
	files   []*file             // as change.Files; nil if there is nothing to review
	blocks  []*block            // of code around the change
	tasks   []question          // that the review's budget has room for
	fixed   int                 // tokens of a prompt without its chunk
	room    int                 // tokens of a prompt for its chunk
	failed  atomic.Bool         // a call failed: no other one is started

	mu       sync.Mutex // guards the fields below
	left     int        // tokens of the review's budget
	done     int
	total    int
	cause    error // of the last part that was not read in full
	coverage review.Coverage
	unread   []review.Unread
	parts    []question // about the parts that were reviewed
	context  review.ContextUse
	proofs   []review.Proof // of parts
	lost     int            // parts in a row that no call could read
	found    []candidate
	counts   remarkCounts
	usage    review.Usage
	model    string
	switches []review.Switch // of models that answered instead of the first one
}

// withoutContext returns q without code around the part.
func (q question) withoutContext() question {
	q.use = review.ContextUse{LeftOut: q.use.LeftOut + q.use.Shown}
	q.context = nil
	return q
}

// reviewAll makes the calls. A part that the model cannot answer is left out. If a call
// fails for another reason, calls in progress run to completion, because they are already
// billed, and no other one is started. If no part was read, it returns why.
func (run *run) reviewAll(ctx context.Context) error {
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, q := range run.tasks {
		calls.Go(func() (err error) {
			defer run.recoverInto(&err)
			return run.reviewPart(ctx, q)
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	if len(run.parts) == 0 {
		return run.cause
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

// Bounds of the cost of an endpoint that cannot read its prompts or finish its answers.
const (
	maxLongSplits = 6 // of a prompt that it refused, which costs nothing
	maxCutSplits  = 2 // of a part whose answer was cut off
	maxLost       = 2 // parts in a row that it did not read, before the rest is given up; one if it is the first
)

// reviewPart reviews one part. If the endpoint finds its prompt too long, or did not prove to
// have read it, the context is left out. Then, and if the answer was cut off, the part is split.
// The context is also left out if no budget has room for it; a part that an earlier attempt has
// split is then split again, because its answers are paid.
func (run *run) reviewPart(ctx context.Context, q question) error {
	if run.failed.Load() {
		return nil
	}
	if why := run.givenUp(q); why != "" {
		run.leaveOut(q.part, why, nil)
		run.step(nil)
		return nil
	}
	answer, err := run.ask(ctx, q)
	if err == nil {
		run.keep(q, answer)
	}
	if err == nil && !answer.Cut {
		run.step(nil)
		return nil
	}
	class := failure.ClassOf(err)
	over, isOver := errors.AsType[overBudgetError](err)
	again := isOver && q.context != nil
	if isOver && !again {
		known, _ := run.cached(ctx, q)
		again = known.Split
	}
	if smaller := q.smaller(err == nil); len(smaller) > 0 && (again || q.splits < splitsFor(err)) {
		run.lg.InfoContext(ctx, "split a part", "changelist", run.change.Number, "error_class", string(class))
		if err != nil && !isOver {
			run.cache(ctx, run.cacheKey(run.cfg.Model, q), cachedAnswer{Split: true})
		}
		return run.reviewSmaller(ctx, smaller, err)
	}
	switch {
	case err == nil:
		run.leaveOut(q.part, review.SkipCutAnswer, nil)
	case isOver:
		run.leaveOut(q.part, over.reason, nil)
	case unanswerable[class] != "":
		run.lg.WarnContext(ctx, "a part was not reviewed", "changelist", run.change.Number, "files", len(q.part), "error_class", string(class), "error", err)
		run.leaveOut(q.part, unanswerable[class], err)
	default:
		return err
	}
	run.step(err)
	return nil
}

// unanswerable are the classes of errors that can be about one part only, with why its files
// are then left out: the other parts are reviewed. An error of another class is one of the
// endpoint, the account or a setting, and fails the review.
var unanswerable = map[failure.Class]review.SkipReason{
	failure.PromptTruncated:  review.SkipUnproven,
	failure.ContentPolicy:    review.SkipRefused,
	failure.SchemaInvalid:    review.SkipUnusable,
	failure.TooLarge:         review.SkipTooLong,
	failure.EndpointRefused:  review.SkipEndpointRefused,
	failure.PermissionDenied: review.SkipEndpointRefused, // of a firewall that reads the request
}

// smaller returns the questions to ask instead of q: about the part without context unless
// only the answer was too long, or else about its halves; none for a single line.
func (q question) smaller(cut bool) []question {
	whole := q.withoutContext()
	if q.context != nil && !cut {
		return []question{whole}
	}
	first, second, ok := q.part.split()
	if !ok {
		return nil
	}
	whole.splits++
	a, b := whole, whole
	a.part, b.part, b.use = first, second, review.ContextUse{} // counted once
	return []question{a, b}
}

// splitsFor returns how often a part may be split after err, which is nil if the answer
// was cut off. A smaller part takes as much thinking as a larger one.
func splitsFor(err error) int {
	_, thought := errors.AsType[thinkingLimitError](err)
	_, refused := errors.AsType[endpoint.Error](err)
	switch class := failure.ClassOf(err); {
	case thought:
		return 0
	case class == failure.TooLarge && refused:
		return maxLongSplits
	case err == nil, class == failure.TooLarge:
		return maxCutSplits
	case class == failure.PromptTruncated:
		return 1
	}
	return 0
}

func (run *run) reviewSmaller(ctx context.Context, smaller []question, why error) error {
	run.mu.Lock()
	run.total += len(smaller)
	run.mu.Unlock()
	run.step(why)
	for _, q := range smaller {
		if err := run.reviewPart(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// givenUp returns why q is not asked, or "": the endpoint has read nothing for too long. If
// that was expensive, other pieces of a first part are not tried; if it cost nothing, another
// part is.
func (run *run) givenUp(q question) review.SkipReason {
	run.mu.Lock()
	defer run.mu.Unlock()
	class := failure.ClassOf(run.cause)
	_, free := errors.AsType[endpoint.Error](run.cause)
	if free && q.splits == 0 {
		run.lost = 0
	}
	first := len(run.parts) == 0 && (class == failure.PromptTruncated || q.splits > 0 && !free)
	if run.lost >= maxLost || run.lost > 0 && first {
		return unanswerable[class]
	}
	return ""
}

// leaveOut records that c was not read in full, and err if the endpoint is the cause.
func (run *run) leaveOut(c chunk, why review.SkipReason, err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	u := review.Unread{Why: why}
	if e, ok := errors.AsType[*failure.Error](err); ok {
		u.Class, u.Context = string(e.Class), strings.TrimSpace(e.Upstream+" "+e.RequestID)
		if e.Class == failure.PromptTruncated || e.Class == failure.TooLarge {
			run.lost++
		}
	}
	c.mark(review.LinesHidden, why)
	for _, s := range c {
		first, last := 0, 0
		for _, h := range s.hunks {
			for _, l := range h.lines {
				if last = max(last, l.number); first == 0 {
					first = l.number
				}
			}
		}
		u.Path, u.Lines = s.file.path, fmt.Sprintf("%d-%d", first, last)
		run.unread = append(run.unread, u)
	}
}

// keep adds the findings of a proven answer to the results.
func (run *run) keep(q question, a cachedAnswer) {
	run.mu.Lock()
	defer run.mu.Unlock()
	for _, f := range a.Findings {
		run.found = append(run.found, candidate{Finding: f, part: len(run.parts)})
	}
	q.part.mark(review.LinesShown, "")
	run.parts = append(run.parts, q)
	run.context = run.context.Add(q.use)
	run.proofs = append(run.proofs, a.Proof)
	run.counts.add(a.remarkCounts)
	run.lost = 0
}

// mark records in the coverage that the lines of c were shown or, for a reason, hidden.
func (c chunk) mark(state review.LineState, why review.SkipReason) {
	for _, s := range c {
		for _, h := range s.hunks {
			for _, l := range h.lines {
				switch {
				case state == review.LinesHidden:
					s.file.coverage.Mark(l.row, l.row, state, why)
				case l.cut:
					s.file.coverage.Mark(l.row, l.row, review.LinesHidden, review.SkipLongLine)
				case redactedMark.MatchString(l.text):
					s.file.coverage.Mark(l.row, l.row, review.LinesMasked, "")
				default:
					s.file.coverage.Mark(l.row, l.row, state, "")
				}
			}
		}
	}
}

// step reports that a call is done; err is its error if the part was not read.
func (run *run) step(err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if err != nil && unanswerable[failure.ClassOf(err)] != "" {
		run.cause = err
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

// switched records that a fallback model answered instead of the first one, if s is set.
func (run *run) switched(ctx context.Context, s review.Switch) {
	if s.To == "" {
		return
	}
	run.lg.WarnContext(ctx, "fallback model answered", "changelist", run.change.Number, "model", s.To, "error_class", s.Why)
	run.mu.Lock()
	defer run.mu.Unlock()
	if i := slices.IndexFunc(run.switches, func(other review.Switch) bool { return other.To == s.To }); i >= 0 {
		run.switches[i].Calls += s.Calls
		return
	}
	run.switches = append(run.switches, s)
}
