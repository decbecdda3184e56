// Package workflows holds the order of a review, its waits and its retries.
// Everything here is deterministic: no clock, no randomness, no ranges over maps, no
// I/O.
//
// policies.go holds the timeouts and attempts of all activities. The interceptor of package
// activities computes the delay between two attempts.
package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Nil pointers that name activities for the compiler; never called.
var (
	bookkeeping *activities.Bookkeeping
	fetching    *activities.Fetching
	redacting   *activities.Redacting
	critiquing  *activities.Critiquing
	notifying   *activities.Notifying
	posting     *activities.Posting
	probing     *activities.Probing
	retaining   *activities.Retaining
)

// ReviewChangelist reviews one changelist: open the job, fetch, redact, critique,
// notify, finish the job. If fetch finds that the change is to be skipped, the review
// ends there. The workflow ID is the idempotency key. A stage that fails for good is
// dead-lettered and fails the workflow; a reset to the last workflow task runs that
// stage again.
func ReviewChangelist(ctx workflow.Context, req review.Request) (review.Result, error) {
	if err := req.Validate(); err != nil {
		return review.Result{}, refusal(ctx, err.Error())
	}
	r := &reviewState{req: req, progress: Progress{Changelist: req.Changelist}}
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (Progress, error) { return r.progress, nil }); err != nil {
		return review.Result{}, err
	}
	result, err := r.review(ctx)
	if temporal.IsCanceledError(err) {
		return review.Result{}, r.cancel(ctx, err)
	}
	return result, err
}

// reviewState is the state of one review.
type reviewState struct {
	req         review.Request
	fetched     activities.FetchResult
	redacted    review.ArtifactRef // output of redact
	verdict     activities.CritiqueResult
	job         review.Job             // as last read
	skipped     review.SkipRule        // why nothing is reviewed; empty if the change is reviewed
	onShelf     *review.Prior          // the review of the shelf with the same content; nil if none
	notNotified map[review.Channel]int // the channels that stage notify failed to notify, with their attempts
	outdated    bool                   // the changelist was shelved again
	spent       activities.Spent       // what ended activities used of the stage's attempt budget
	run         string                 // run that the job is known to be of; empty in histories without adoptsResets
	progress    Progress               // for people
}

func (r *reviewState) review(ctx workflow.Context) (review.Result, error) {
	opening, err := r.open(ctx)
	if err != nil || opening.Verdict == review.VerdictDuplicate {
		return review.Result{Job: opening.Job, Duplicate: true}, err
	}
	if adoptsResets(ctx) {
		r.run = opening.Job.RunID
	}
	err = r.runStages(ctx)
	if errors.Is(err, errSuperseded) {
		return review.Result{Job: r.job, Duplicate: true}, r.showOutcome(ctx, review.OutcomeSuperseded)
	}
	if err != nil {
		return review.Result{}, err
	}
	return review.Result{Job: r.job, StandIn: r.verdict.StandIn}, r.showOutcome(ctx, r.job.Outcome)
}

func (r *reviewState) open(ctx workflow.Context) (review.Opening, error) {
	var opening review.Opening
	r.show(ctx, "opening its job")
	err := bookLocally(ctx, "open", bookkeeping.OpenJob, r.req, &opening)
	r.progress.Link = opening.Link
	if err != nil {
		return opening, err
	}
	if server := opening.OtherServer; server != "" {
		return r.refuse(ctx, fmt.Sprintf("changelist %d was reviewed as one of server %s, not %s: "+
			"a second Perforce server needs its own database and namespace", r.req.Changelist, server, r.req.ServerID))
	}
	if opening.Verdict == review.VerdictRefused {
		return r.refuse(ctx, fmt.Sprintf("review version %d of changelist %d is lower than existing version %d",
			r.req.Version, r.req.Changelist, opening.Job.Version))
	}
	if v := opening.Job.Version; opening.Verdict == review.VerdictRun && v != r.req.Version {
		r.req.Version = v // a review of the shelf has the requested version
		return opening, showVersion(ctx, v)
	}
	return opening, nil
}

func (r *reviewState) runStages(ctx workflow.Context) error {
	newest := r.untilReshelved(ctx)
	for _, step := range []struct {
		ctx   workflow.Context
		stage review.Stage
		run   func(workflow.Context) error
	}{
		{newest, review.StageFetch, r.fetch},
		{newest, review.StageLLM, r.critique},
		{ctx, review.StageNotify, r.notify},
	} {
		err := r.stage(ctx, step.stage, func() error { return step.run(step.ctx) })
		if err != nil {
			return err
		}
		if r.skipped != "" {
			break
		}
	}
	if _, err := r.adoptRun(ctx); err != nil {
		return err
	}
	if r.skipped != "" {
		return bookLocally(ctx, "skip", bookkeeping.SkipJob, activities.SkipParams{Request: r.req, SkippedBy: r.skipped}, &r.job)
	}
	return bookLocally(ctx, "finish", bookkeeping.FinishJob, activities.FinishParams{
		Request: r.req, Outcome: r.verdict.Outcome, Findings: r.verdict.Findings, Report: r.verdict.Report,
	}, &r.job)
}

// execute runs an activity of a stage. Activities of a stage share its attempt budget.
func (r *reviewState) execute(ctx workflow.Context, p policy, id string, activity, in, out any) error {
	if _, err := r.adoptRun(ctx); err != nil {
		return err
	}
	return r.attempt(ctx, p, &r.spent, id, activity, in, out)
}

// attempt runs an activity. Temporal counts the attempts that ended because their worker
// stopped; if they used up the budget, attempt runs the activity again with the rest.
func (r *reviewState) attempt(ctx workflow.Context, p policy, spent *activities.Spent, id string, activity, in, out any) error {
	for {
		err := workflow.ExecuteActivity(r.withPriority(p.without(*spent).on(ctx, id)), activity, in).Get(ctx, out)
		if err == nil || r.run == "" {
			return err
		}
		report := reportOf(ctx, err, *spent)
		left := p.attempts - spent.Failures - report.Failures()
		if report.Stopped == 0 || isFinal(err) || left <= 0 {
			return err
		}
		spent.Add(activities.Spent{Failures: report.Failures(), FirstFailureAt: report.FirstAt})
	}
}

func (r *reviewState) fetch(ctx workflow.Context) error {
	var result activities.FetchResult
	err := r.execute(ctx, fetchPolicy, "fetch", fetching.Fetch, activities.StageParams{Request: r.req}, &result)
	r.fetched, r.skipped = result, result.SkippedBy
	if err == nil {
		r.progress.Author = map[bool]string{false: "a person", true: "a bot"}[result.ByBot]
	}
	if err == nil && result.Shelf != 0 {
		err = r.compareWithShelf(ctx)
	}
	return err
}

// compareWithShelf looks for a review of the shelf with the same content. A shelf that is
// shelved again without a change is skipped.
func (r *reviewState) compareWithShelf(ctx workflow.Context) error {
	err := book(ctx, "compare", bookkeeping.CompareWithShelf, r.req, &r.onShelf)
	if err == nil && r.onShelf != nil && r.req.Shelved {
		r.skipped = review.SkipRuleSame
	}
	return err
}

// critique is stage llm: up to three activities that share one attempt budget. A replay
// keeps the redacted change of the dead run. If the model stage has other redaction rules
// than the redact stage had, because workers are being replaced, the change is redacted
// again.
func (r *reviewState) critique(ctx workflow.Context) error {
	if err := r.adoptReport(ctx); err != nil || r.verdict.Report != "" {
		return err
	}
	for again := 0; ; again++ {
		if err := r.redact(ctx); err != nil {
			return err
		}
		err := r.execute(ctx, modelPolicy, "critique", critiquing.Critique, activities.StageParams{Request: r.req, Input: r.redacted}, &r.verdict)
		if err == nil || reportOf(ctx, err, r.spent).Class != failure.RedactionOutdated || again == redactAgainLimit || !redactsAgain(ctx) {
			return err
		}
		r.redacted = ""
		if again > 0 {
			if err := r.awaitSameRules(ctx); err != nil {
				return err
			}
		}
	}
}

func (r *reviewState) awaitSameRules(ctx workflow.Context) error {
	r.show(ctx, "waiting until the workers of redact and llm have the same redaction rules")
	defer r.show(ctx, "stage "+string(review.StageLLM))
	return workflow.Sleep(ctx, redactAgainPause)
}

// redact redacts the change, unless that was done.
func (r *reviewState) redact(ctx workflow.Context) error {
	if r.redacted != "" {
		return nil
	}
	var result activities.RedactResult
	err := r.execute(ctx, redactPolicy, "redact", redacting.Redact, activities.StageParams{Request: r.req, Input: r.fetched.Raw}, &result)
	r.redacted = result.Redacted
	r.spent.Add(result.Spent)
	return err
}

// adoptReport uses the report of the shelf's review for the submit, if the contents are
// the same and the report has not expired.
func (r *reviewState) adoptReport(ctx workflow.Context) error {
	if r.onShelf == nil {
		return nil
	}
	var adoption activities.Adoption
	err := r.execute(ctx, adoptPolicy, "adopt", notifying.AdoptReport, activities.StageParams{Request: r.req, Input: r.onShelf.Report}, &adoption)
	r.verdict = adoption.CritiqueResult
	r.spent.Add(adoption.Spent)
	return err
}

// withPriority lets activities after fetch take turns by author, and gives them a lower
// priority if the author is a bot.
func (r *reviewState) withPriority(ctx workflow.Context) workflow.Context {
	rank := temporal.Priority{FairnessKey: r.fetched.Author}
	if r.fetched.ByBot {
		rank.PriorityKey = botPriority
	}
	return workflow.WithPriority(ctx, rank)
}

// notify is stage notify: the mails, then the channels, whether or not the mails
// succeed. Each recipient and each channel has the whole attempt budget. If mails fail,
// their result is missing, so all channels are tried: an activity of a channel without
// an open outbox row does nothing.
func (r *reviewState) notify(ctx workflow.Context) error {
	p := activities.StageParams{Request: r.req, Input: r.verdict.Report}
	var mailed activities.NotifyResult
	err := r.execute(ctx, mailPolicy.waitingForCancellation(r.run != ""), "notify", notifying.Notify, p, &mailed)
	if temporal.IsCanceledError(err) || errors.Is(err, errSuperseded) {
		return err
	}
	if adopted, errAdopt := r.adoptRun(ctx); errAdopt != nil {
		return errAdopt
	} else if adopted && err != nil {
		return r.notify(ctx) // the failure is one of the former run
	}
	channels := mailed.Channels
	if err != nil {
		channels = review.Channels()
	}
	spent, errChannels := r.notifyChannels(ctx, p, channels)
	if err == nil {
		err, r.spent = errChannels, spent
	}
	return err
}

// notifyChannels notifies the channels concurrently and returns the first error, with what
// its channel used of its attempt budget before the last activity.
func (r *reviewState) notifyChannels(ctx workflow.Context, p activities.StageParams, channels []review.Channel) (used activities.Spent, first error) {
	errs, spent := make([]error, len(channels)), make([]activities.Spent, len(channels))
	done := workflow.NewWaitGroup(ctx)
	for i, c := range channels {
		done.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer done.Done()
			errs[i] = r.attempt(ctx, channelPolicy(c).waitingForCancellation(r.run != ""), &spent[i], "notify-"+string(c), posting.NotifyChannel,
				activities.ChannelParams{StageParams: p, Channel: c}, nil)
		})
	}
	done.Wait(ctx)
	r.notNotified = map[review.Channel]int{}
	for i, c := range channels {
		if errs[i] != nil {
			r.notNotified[c] = spent[i].Failures + reportOf(ctx, errs[i], spent[i]).Failures()
			if first == nil {
				used, first = spent[i], errs[i]
			}
		}
	}
	return used, first
}

// cancel marks the job canceled and returns the cancellation.
func (r *reviewState) cancel(ctx workflow.Context, canceled error) error {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	r.show(ctx, "canceled")
	if _, err := r.adoptRun(ctx); err != nil && !errors.Is(err, errSuperseded) {
		return err
	}
	if err := book(ctx, "cancel", bookkeeping.CancelJob, r.req, nil); err != nil {
		return err
	}
	return canceled
}

// refuse dead-letters a request for which no job is opened (processing 8.1). A replay tries
// to open the job again.
func (r *reviewState) refuse(ctx workflow.Context, message string) (opening review.Opening, err error) {
	err = refusal(ctx, message)
	if !deadLettersRefusals(ctx) {
		return opening, err
	}
	if _, err = r.recordDeadLetter(ctx, review.StageFetch, err); err != nil {
		return opening, err
	}
	return r.open(ctx)
}

// refusal is the error of an invalid request. Without a valid changelist and key the
// failure of the workflow is the only dead letter.
func refusal(ctx workflow.Context, message string) error {
	now := workflow.Now(ctx).UTC()
	report := failure.Report{Class: failure.InputInvalid, Stack: message, Attempt: 1, At: now, FirstAt: now}
	return temporal.NewNonRetryableApplicationError(message, string(failure.InputInvalid), nil, report)
}
