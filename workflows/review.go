// Package workflows holds the order of a review, its waits and its retries.
// Everything here is deterministic: no clock, no randomness, no ranges over maps, no
// I/O.
//
// review.go tells a review from its start to its end: the stages, what happens if one fails,
// and what people see of it. policies.go holds the timeouts and attempts of all activities, and
// runs them; deadletter.go makes the record of a failed stage. shelf.go waits until a shelf is
// quiet, catchup.go finds changelists without a review, and maintenance.go has the workflows of
// retention and reconciliation.
package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// Nil pointers that name activities for the compiler; never called.
var (
	bookkeeper *activities.Bookkeeper
	fetcher    *activities.Fetcher
	redactor   *activities.Redactor
	model      *activities.Model
	notifier   *activities.Notifier
	poster     *activities.Poster
	retention  *activities.Retention
)

// reviewState is the state of one review.
type reviewState struct {
	req      review.Request
	run      string     // run that owns the review, as far as this run knows; see takeOver
	job      review.Job // as last read; zero before it is opened
	link     string     // to the change, for people; may be empty
	fetched  activities.FetchResult
	skipped  review.SkipRule       // why nothing is reviewed; empty if the change is reviewed
	outdated bool                  // the changelist was shelved again
	onShelf  *review.EarlierReview // the review of the shelf with the same content; nil if none
	redacted review.ArtifactRef
	reviewed activities.LLMResult

	spent       activities.Spent       // what ended activities used of the stage's attempt budget
	notNotified map[review.Channel]int // the channels that stage notify failed to notify, with their attempts
}

// These errors end a review without a failure.
var (
	errDuplicate  = errors.New("duplicate")  // the job belongs to an earlier review
	errSuperseded = errors.New("superseded") // a replay, but the review or a newer one has succeeded meanwhile
)

// ReviewChangelist reviews one changelist in three stages: fetch opens the job and reads
// the change, llm redacts it and calls the model, notify sends the review. If fetch finds
// that the change is to be skipped, the review ends there. The workflow ID is the
// idempotency key. A stage that fails for good is dead-lettered and fails the workflow; a
// reset to the last workflow task runs that stage again.
func ReviewChangelist(ctx workflow.Context, req review.Request) (review.Result, error) {
	if err := req.Validate(); err != nil {
		return review.Result{}, refusal(ctx, err.Error())
	}
	if id := workflow.GetInfo(ctx).WorkflowExecution.ID; id != req.Key {
		return review.Result{}, refusal(ctx, fmt.Sprintf("workflow ID %q is not the idempotency key %q: "+
			"start this workflow with the key as its ID, or the review with: criticizer-starter change-commit %d", id, req.Key, req.Changelist))
	}
	r := &reviewState{req: req}
	err := r.review(ctx)
	result, outcome := review.Result{Job: r.job, StandIn: r.reviewed.StandIn}, r.job.Outcome
	switch {
	case temporal.IsCanceledError(err):
		return review.Result{}, r.cancel(ctx, err)
	case errors.Is(err, errDuplicate):
		ended := "done: the review exists already"
		if r.job.Forgotten {
			ended = "done: the review was forgotten"
		}
		r.show(ctx, ended)
		return review.Result{Job: r.job, Duplicate: true}, nil
	case errors.Is(err, errSuperseded):
		result, outcome = review.Result{Job: r.job, Duplicate: true}, review.OutcomeSuperseded
	case err != nil:
		return review.Result{}, err
	}
	ended := "done: " + string(outcome)
	if r.skipped != "" {
		ended += ", skipped: " + string(r.skipped)
	}
	r.show(ctx, ended)
	return result, workflow.UpsertTypedSearchAttributes(ctx, contract.AttributeOutcome.ValueSet(string(outcome)))
}

// refusal is the error of an invalid request. Without a dead letter the failure of the
// workflow is the only record of it.
func refusal(ctx workflow.Context, message string) error {
	now := workflow.Now(ctx).UTC()
	report := failure.Report{Class: failure.InputInvalid, Stack: message, Attempt: 1, At: now, FirstAt: now}
	return temporal.NewNonRetryableApplicationError(message, string(failure.InputInvalid), nil, report)
}

// review runs the stages, then closes the job.
func (r *reviewState) review(ctx workflow.Context) error {
	if _, err := r.takeOver(ctx); err != nil {
		return err
	}
	newest := r.untilReshelved(ctx)
	for _, step := range []struct {
		ctx   workflow.Context
		stage review.Stage
		do    func(workflow.Context) error
	}{
		{newest, review.StageFetch, r.fetch},
		{newest, review.StageLLM, r.llm},
		{ctx, review.StageNotify, r.notify},
	} {
		err := r.stage(ctx, step.stage, func() error { return step.do(step.ctx) })
		if err != nil {
			return err
		}
		if r.skipped != "" {
			break
		}
	}
	if _, err := r.takeOver(ctx); err != nil {
		return err
	}
	p := activities.StageParams{Request: r.req, Input: r.reviewed.Report}
	if r.skipped != "" {
		return bookLocally(ctx, "skip", bookkeeper.SkipJob, activities.SkipParams{StageParams: p, SkippedBy: r.skipped}, &r.job)
	}
	return bookLocally(ctx, "finish", bookkeeper.FinishJob, p, &r.job)
}

// fetch is stage fetch: it opens the job, reads the change, and looks for a review of the
// shelf with the same content. A request for which no job is opened is dead-lettered
// (processing 8.1); a replay tries to open the job again. A shelf that is shelved again without
// a change is skipped.
func (r *reviewState) fetch(ctx workflow.Context) error {
	if r.job.ID == 0 {
		r.show(ctx, "opening its job")
		var opened review.OpenResult
		if err := bookLocally(ctx, "open", bookkeeper.OpenJob, r.req, &opened); err != nil {
			return err
		}
		r.link = opened.Link
		if server := opened.OtherServer; server != "" {
			return refusal(ctx, fmt.Sprintf("changelist %d was reviewed as one of server %s, not %s: "+
				"a second Perforce server needs its own database and namespace", r.req.Changelist, server, r.req.ServerID))
		}
		if opened.Decision == review.DecisionRefused {
			return refusal(ctx, fmt.Sprintf("review version %d of changelist %d is lower than existing version %d",
				r.req.Version, r.req.Changelist, opened.Job.Version))
		}
		r.job = opened.Job
		if opened.Decision == review.DecisionDuplicate {
			return errDuplicate
		}
		if v := r.job.Version; v != r.req.Version {
			r.req.Version = v // a review of the shelf has the requested version
			if err := workflow.UpsertTypedSearchAttributes(ctx, contract.AttributeReviewVersion.ValueSet(int64(v))); err != nil {
				return err
			}
		}
		r.show(ctx, "stage "+string(review.StageFetch))
	}
	var result activities.FetchResult
	err := r.do(ctx, fetchPolicy, "fetch", &result, fetcher.Fetch, activities.StageParams{Request: r.req})
	if err != nil {
		return err
	}
	r.fetched, r.skipped = result, result.SkippedBy
	if result.Shelf == 0 {
		return nil
	}
	err = book(ctx, "compare", bookkeeper.CompareWithShelf, r.req, &r.onShelf)
	if err == nil && r.onShelf != nil && r.req.Shelved {
		r.skipped = review.SkipRuleSame
	}
	return err
}

// llm is stage llm: up to three activities. It uses the report of the shelf's review if
// there is one that has not expired. A replay keeps the redacted change of the dead run. If
// that was redacted under other rules than the worker of the model has, the change is
// redacted again, once, which uses no attempt.
func (r *reviewState) llm(ctx workflow.Context) error {
	if r.onShelf != nil {
		var adoption activities.Adoption
		err := r.do(ctx, adoptPolicy, "adopt", &adoption, notifier.AdoptReport, activities.StageParams{Request: r.req, Input: r.onShelf.Report})
		if err != nil || adoption.Report != "" {
			r.reviewed = adoption.LLMResult
			return err
		}
		r.spent.Add(adoption.Spent)
	}
	for again := false; ; again = true {
		if r.redacted == "" {
			var result activities.RedactResult
			err := r.do(ctx, redactPolicy, "redact", &result, redactor.Redact, activities.StageParams{Request: r.req, Input: r.fetched.Raw})
			if err != nil {
				return err
			}
			r.redacted = result.Redacted
			r.spent.Add(result.Spent)
		}
		before := r.spent
		err := r.do(ctx, llmPolicy, "llm", &r.reviewed, model.LLM, activities.StageParams{Request: r.req, Input: r.redacted})
		if err == nil || reportOf(ctx, err).Class != failure.RedactionOutdated || again {
			return err
		}
		r.redacted, r.spent = "", before
	}
}

// notify is stage notify: the mails, then the channels concurrently, whether or not the
// mails succeed. Each recipient and each channel has the whole attempt budget. If mails
// fail, their result is missing, so all channels are tried: an activity of a channel without
// an open outbox row does nothing.
func (r *reviewState) notify(ctx workflow.Context) error {
	p := activities.StageParams{Request: r.req, Input: r.reviewed.Report}
	var mailed activities.NotifyResult
	errMails := r.do(ctx, mailPolicy, "notify", &mailed, notifier.Notify, p)
	if temporal.IsCanceledError(errMails) || errors.Is(errMails, errSuperseded) {
		return errMails
	}
	if tookOver, err := r.takeOver(ctx); err != nil {
		return err
	} else if tookOver && errMails != nil {
		return r.notify(ctx) // the failure is one of the former run
	}
	channels := mailed.Channels
	if errMails != nil {
		channels = review.Channels()
	} else {
		r.spent = activities.Spent{} // a dead letter is about channels only
	}
	errs, spent := make([]error, len(channels)), make([]activities.Spent, len(channels))
	done := workflow.NewWaitGroup(ctx)
	for i, c := range channels {
		done.Add(1)
		workflow.Go(r.withPriority(ctx), func(ctx workflow.Context) {
			defer done.Done()
			errs[i] = channelPolicy(c).execute(ctx, "notify-"+string(c), &spent[i], nil, poster.NotifyChannel, activities.ChannelParams{StageParams: p, Channel: c})
		})
	}
	done.Wait(ctx)
	first := errMails
	r.notNotified = map[review.Channel]int{}
	for i, c := range channels {
		if errs[i] != nil {
			r.notNotified[c] = spent[i].Failures
			r.spent.Add(spent[i])
			if first == nil {
				first = errs[i]
			}
		}
	}
	return first
}

// stage runs one stage until it succeeds or this run dead-letters it.
//
// RecordDeadLetter returns the run ID that it recorded. If that is the ID of this run,
// the workflow fails in the same workflow task: a reset to the last workflow task then
// cuts the history directly after RecordDeadLetter. The new run reads the ID of another
// run there, so it is a replay of that run, and runs the stage again with a full attempt
// budget (processing 8.5). Nothing that needs another workflow task may come between
// RecordDeadLetter and the failure.
func (r *reviewState) stage(ctx workflow.Context, stage review.Stage, do func() error) error {
	for {
		r.spent, r.notNotified = activities.Spent{}, nil
		r.show(ctx, "stage "+string(stage))
		err := workflow.UpsertTypedSearchAttributes(ctx, contract.AttributeStage.ValueSet(string(stage)), contract.AttributeErrorClass.ValueUnset())
		if err != nil {
			return err
		}
		cause := do()
		switch {
		case errors.Is(cause, errDuplicate), errors.Is(cause, errSuperseded):
			return cause
		case r.outdated && stage != review.StageNotify:
			r.skipped = review.SkipRuleNewer
			return nil
		case cause == nil, temporal.IsCanceledError(cause):
			return cause
		}
		if tookOver, err := r.takeOver(ctx); err != nil {
			return err
		} else if tookOver {
			continue // the failure is one of the former run
		}
		deadLetter := r.deadLetter(ctx, stage, cause)
		var recorded activities.Recorded
		if err := book(ctx, "dead-letter", bookkeeper.RecordDeadLetter, activities.DeadLetterParams{StageParams: activities.StageParams{Request: r.req}, DeadLetter: deadLetter}, &recorded); err != nil {
			return err
		}
		if recorded.RunID == workflow.GetInfo(ctx).WorkflowExecution.RunID {
			hint := deadLetter.Hint
			if recorded.Escalated {
				hint = failure.EscalatedHint
			}
			r.show(ctx, fmt.Sprintf("dead in stage %s: %s, %s", deadLetter.Stage, deadLetter.ErrorClass, hint))
			shown := []temporal.SearchAttributeUpdate{contract.AttributeErrorClass.ValueSet(string(deadLetter.ErrorClass))}
			if recorded.Escalated {
				shown = append(shown, contract.AttributeEscalated.ValueSet(true))
			}
			if err := workflow.UpsertTypedSearchAttributes(ctx, shown...); err != nil {
				return err
			}
			message := fmt.Sprintf("stage %s of changelist %d dead-lettered: %s", deadLetter.Stage, r.req.Changelist, deadLetter.Hint)
			return temporal.NewApplicationErrorWithOptions(message, string(deadLetter.ErrorClass), temporal.ApplicationErrorOptions{
				NonRetryable: true, Cause: cause, Details: []any{deadLetter},
			})
		}
		if _, err := r.takeOver(ctx); err != nil {
			return err
		}
	}
}

// takeOver assigns the review to this run, if a reset made this run from the one that
// came this far. It is called before each step with an effect. The side effect records the
// run that makes the call: in the part of the history that a reset copies, that is the former
// run, and after that part this one.
func (r *reviewState) takeOver(ctx workflow.Context) (tookOver bool, err error) {
	var run string
	err = workflow.MutableSideEffect(ctx, "run",
		func(ctx workflow.Context) any { return workflow.GetInfo(ctx).WorkflowExecution.RunID },
		func(a, b any) bool { return a == b },
	).Get(&run)
	if err != nil {
		return false, err
	}
	if r.run == "" || run == r.run { // the first call, or no reset
		r.run = run
		return false, nil
	}
	err = book(ctx, "replay", bookkeeper.BeginReplay, activities.ReplayParams{StageParams: activities.StageParams{Request: r.req}, DeadRunID: r.run}, &r.job)
	if err != nil {
		return false, err
	}
	if r.job.State != review.JobInProgress {
		return false, errSuperseded
	}
	r.run = run
	return true, nil
}

// do runs an activity of a stage. The activities of a stage share its attempt budget.
// Activities after fetch take turns by author, and have a lower priority if the author is
// a bot.
func (r *reviewState) do(ctx workflow.Context, p policy, id string, out, activity, in any) error {
	if _, err := r.takeOver(ctx); err != nil {
		return err
	}
	return p.execute(r.withPriority(ctx), id, &r.spent, out, activity, in)
}

func (r *reviewState) withPriority(ctx workflow.Context) workflow.Context {
	rank := temporal.Priority{FairnessKey: r.fetched.Author}
	if r.fetched.ByBot {
		rank.PriorityKey = botPriority
	}
	return workflow.WithPriority(ctx, rank)
}

// show makes now the current details of the review in the Temporal UI, in Markdown. It adds
// nothing to the history.
func (r *reviewState) show(ctx workflow.Context, now string) {
	change := r.req.Changelist.String()
	if r.link != "" {
		change = fmt.Sprintf("[%s](%s)", change, r.link)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Changelist %s, review version %d: **%s**\n\n"+
		"*Pending Activities* has attempts, the last failure and the next attempt. "+
		"Why it waits, how it ended, and what to do: criticizer why %d", change, r.req.Version, now, r.req.Changelist))
}

// cancel marks the job canceled and returns the cancellation.
func (r *reviewState) cancel(ctx workflow.Context, canceled error) error {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	r.show(ctx, "canceled")
	if _, err := r.takeOver(ctx); err != nil && !errors.Is(err, errSuperseded) {
		return err
	}
	if err := book(ctx, "cancel", bookkeeper.CancelJob, r.req, nil); err != nil {
		return err
	}
	return canceled
}
