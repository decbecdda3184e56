package eval

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// redactor is the redaction pipeline.
type redactor interface {
	Change(c review.Change) (redaction.Change, error)
	Findings(fs []review.Finding) ([]review.Finding, error)
}

// reviewer has a model review a change.
type reviewer interface {
	Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error)
}

// Config configures an [Evaluator].
type Config struct {
	// Runs is the number of reviews of each case. Default 1.
	Runs int
	// Concurrency is the number of concurrent reviews. Default 1.
	Concurrency int
	// Tolerance is the number of lines by which a finding may miss its place.
	Tolerance int
	// Recording is filled or replayed. Default: none.
	Recording *Recording
	// Progress receives the number of finished reviews after each one. Its calls do
	// not overlap. Default nil.
	Progress func(done, total int)
}

// An Evaluator reviews cases.
type Evaluator struct {
	pipeline redactor
	reviewer reviewer
	policy   *selection.Policy
	cfg      Config
}

// New returns an evaluator of a reviewer behind its pipeline.
func New(pipeline redactor, reviewer reviewer, policy *selection.Policy, cfg Config) *Evaluator {
	cfg.Runs, cfg.Concurrency = max(1, cfg.Runs), max(1, cfg.Concurrency)
	return &Evaluator{pipeline, reviewer, policy, cfg}
}

// A Result is the result of one case in one run.
type Result struct {
	Case     string `json:"case"`
	Language string `json:"language"`
	Class    string `json:"class"` // defect, clean or hostile
	Run      int    `json:"run"`   // from 1
	// Expected counts the expectations, and Found those that were met.
	Expected int `json:"expected"`
	Found    int `json:"found"`
	// Findings counts the findings, True the expected ones. The others are allowed
	// or in False.
	Findings int      `json:"findings"`
	True     int      `json:"true"`
	Missed   []string `json:"missed,omitempty"`
	False    []string `json:"false,omitempty"`
	// Suppressed is set if the instructions of a hostile case had no effect.
	Suppressed bool                  `json:"suppressed"`
	Anchors    map[review.Anchor]int `json:"anchors,omitempty"`
	Usage      review.Usage          `json:"usage"`
	// Failure is the class of a failed review, which counts as one without findings.
	Failure failure.Class `json:"failure,omitempty"`

	model    string
	switched bool // a fallback model answered a part
}

// measured are the classes of failures caused by the case or the model's answer.
// They are part of the result; any other failure ends the evaluation, such as one of an
// endpoint that does not prove that it reads its prompts.
var measured = []failure.Class{failure.SchemaInvalid, failure.ContentPolicy, failure.TooLarge, failure.RedactionBlocked}

// Run reviews all cases and returns the results by case and run. An error, such
// as an unreachable model, means that there is no result.
func (e *Evaluator) Run(ctx context.Context, cases []Case) ([]Result, error) {
	results := make([]Result, len(cases)*e.cfg.Runs)
	reviews, ctx := errgroup.WithContext(ctx)
	reviews.SetLimit(e.cfg.Concurrency)
	var mu sync.Mutex
	done := 0
	for i := range results {
		reviews.Go(func() error {
			c, run := &cases[i/e.cfg.Runs], i%e.cfg.Runs+1
			shared, err := e.cfg.Recording.attempts(reviewName(c.Name, run))
			if err == nil {
				results[i], err = e.measure(ctx, c, shared)
			}
			if err != nil {
				return fmt.Errorf("review case %s: %w", c.Name, err)
			}
			results[i].Run = run
			mu.Lock()
			defer mu.Unlock()
			if e.cfg.Recording != nil {
				e.cfg.Recording.add(reviewName(c.Name, run), shared)
			}
			if done++; e.cfg.Progress != nil {
				e.cfg.Progress(done, len(results))
			}
			return nil
		})
	}
	return results, reviews.Wait()
}

func reviewName(name string, run int) string { return name + "#" + strconv.Itoa(run) }

// measure reviews one case and compares the findings.
func (e *Evaluator) measure(ctx context.Context, c *Case, all *attempts) (Result, error) {
	var draft review.Draft
	var err error
	if all.Failure != "" { // as recorded
		err = failure.Errorf(all.Failure, "the recorded review failed")
	} else {
		draft, err = e.review(ctx, c, all)
	}
	if slices.ContainsFunc(draft.Coverage.Tally().Rest, func(row review.TallyRow) bool { return row.Why == review.SkipUnproven }) {
		err = failure.Errorf(failure.PromptTruncated, "endpoint did not prove that it read all parts of the case: it is not scored")
	}
	failed := failure.ClassOf(err)
	if err != nil && !slices.Contains(measured, failed) {
		return Result{}, err
	}
	r := matcher{e.cfg.Tolerance}.compare(c, draft.Findings)
	r.Anchors, r.Usage, r.model, r.switched = draft.Anchors, all.Usage, draft.Model, len(draft.Switches) > 0
	if err != nil {
		all.Failure, r.Failure, r.Suppressed = failed, failed, false
	}
	return r, nil
}

func (e *Evaluator) review(ctx context.Context, c *Case, all *attempts) (review.Draft, error) {
	change, err := c.change(ctx, e.policy)
	if err != nil {
		return review.Draft{}, err
	}
	change.Number, change.User, change.Description = 1, "author", c.description
	redacted, err := e.pipeline.Change(change)
	if err != nil {
		return review.Draft{}, err
	}
	draft, err := e.ask(ctx, redacted, all)
	if err != nil {
		return draft, err
	}
	if draft.Findings, err = e.pipeline.Findings(draft.Findings); err != nil {
		return draft, err
	}
	restorePaths(c, redacted, draft.Findings)
	return draft, nil
}

// ask retries a review as often as the service does.
func (e *Evaluator) ask(ctx context.Context, c redaction.Change, all *attempts) (review.Draft, error) {
	for attempt := 1; ; attempt++ {
		draft, err := e.reviewer.Review(ctx, c, all.options())
		class := failure.ClassOf(err)
		if err == nil || !failure.Retryable(err) || slices.Contains(measured, class) || attempt == failure.AttemptBudget {
			return draft, err
		}
		var asked time.Duration
		if classified, ok := errors.AsType[*failure.Error](err); ok {
			asked = classified.RetryAfter
		}
		select {
		case <-ctx.Done():
			return draft, ctx.Err()
		case <-time.After(failure.Backoff(attempt, rand.Float64(), asked)):
		}
	}
}

// restorePaths replaces redacted paths in findings by the paths of the case.
func restorePaths(c *Case, shown redaction.Change, findings []review.Finding) {
	original := map[string]string{}
	for i, f := range shown.Files {
		original[f.Path.String()] = c.edits[i].Path
	}
	for i := range findings {
		f := &findings[i]
		f.Path = original[f.Path]
		for j := range f.Places {
			f.Places[j].Path = original[f.Places[j].Path]
		}
	}
}

func location(f review.Finding) string {
	if f.StartLine == 0 {
		return f.Path
	}
	return f.Path + ":" + strconv.Itoa(f.StartLine)
}
