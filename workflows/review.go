// Package workflows holds the order of a review, its waits and its retries.
// Everything here is deterministic: no clock, no randomness, no map ranges, no
// I/O. All policies are in policies.go.
package workflows

import (
	"cmp"
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
	telling     *activities.Telling
)

// ReviewChangelist reviews one changelist: dedupe gate, fetch, redact,
// critique, notify, finish; of a change that fetch finds is to be skipped, nothing
// after fetch. Its workflow ID is the idempotency key. A stage
// that fails for good is dead-lettered and fails the workflow; a stock reset to
// the last workflow task runs that stage again.
func ReviewChangelist(ctx workflow.Context, req review.Request) (review.Result, error) {
	if err := req.Validate(); err != nil {
		return review.Result{}, refuse(err.Error())
	}
	r := &reviewing{req: req}
	result, err := r.review(ctx)
	if temporal.IsCanceledError(err) {
		return review.Result{}, r.cancel(ctx, err)
	}
	return result, err
}

// reviewing is the state of one review.
type reviewing struct {
	req      review.Request
	raw      review.ArtifactRef // what fetch stored
	redacted review.ArtifactRef // what redact stored
	verdict  activities.CritiqueResult
	job      review.Job      // as it was last read
	skipped  review.SkipRule // why nothing is reviewed; empty if something is
	onShelf  *review.Prior   // the shelf's review that read the same; nil if none did
	byBot    bool            // the author is no person: people's changes go first
	untold   []string        // the channels that stage notify could not tell

	needsSlots bool // the change is to paths of which few reviews may be in flight
	outdated   bool // the changelist was shelved again
}

func (r *reviewing) review(ctx workflow.Context) (review.Result, error) {
	opening, err := r.open(ctx)
	if err != nil || opening.Verdict == review.VerdictDuplicate {
		return review.Result{Job: opening.Job, Duplicate: true}, err
	}
	err = r.run(ctx)
	if errors.Is(err, errSuperseded) {
		return review.Result{Job: r.job, Duplicate: true}, showOutcome(ctx, review.OutcomeSuperseded)
	}
	if err != nil {
		return review.Result{}, err
	}
	return review.Result{Job: r.job}, showOutcome(ctx, r.job.Outcome)
}

func (r *reviewing) open(ctx workflow.Context) (review.Opening, error) {
	var opening review.Opening
	err := bookAtOnce(ctx, "open", bookkeeping.OpenJob, r.req, &opening)
	if err != nil {
		return opening, err
	}
	if server := opening.OtherServer; server != "" {
		return opening, refuse(fmt.Sprintf("changelist %d was reviewed as one of the server %s, not %s: "+
			"a second Perforce server needs a database and a namespace of its own", r.req.Changelist, server, r.req.ServerID))
	}
	if opening.Verdict == review.VerdictRefused {
		return opening, refuse(fmt.Sprintf("review version %d of changelist %d is lower than version %d, which exists",
			r.req.Version, r.req.Changelist, opening.Job.Version))
	}
	if v := opening.Job.Version; opening.Verdict == review.VerdictRun && v != r.req.Version {
		r.req.Version = v // reviews of the shelf have taken the one that was asked for
		return opening, showVersion(ctx, v)
	}
	return opening, nil
}

func (r *reviewing) run(ctx workflow.Context) error {
	newest := r.whileNewest(ctx)
	for _, step := range []struct {
		ctx   workflow.Context
		stage review.Stage
		run   func(workflow.Context) (activities.Spent, error)
	}{
		{newest, review.StageFetch, r.fetch},
		{newest, review.StageLLM, r.critique},
		{ctx, review.StageNotify, r.notify},
	} {
		err := r.stage(ctx, step.stage, func() (activities.Spent, error) { return step.run(step.ctx) })
		if err != nil {
			return err
		}
		if r.skipped != "" {
			return bookAtOnce(ctx, "skip", bookkeeping.SkipJob, activities.SkipParams{Request: r.req, SkippedBy: r.skipped}, &r.job)
		}
	}
	return bookAtOnce(ctx, "finish", bookkeeping.FinishJob, activities.FinishParams{
		Request: r.req, Outcome: r.verdict.Outcome, Findings: r.verdict.Findings, Report: r.verdict.Report,
	}, &r.job)
}

// fetch is the whole stage fetch.
func (r *reviewing) fetch(ctx workflow.Context) (activities.Spent, error) {
	var result activities.FetchResult
	err := workflow.ExecuteActivity(forFetch(ctx, failure.AttemptBudget), fetching.Fetch,
		activities.StageParams{Request: r.req}).Get(ctx, &result)
	r.raw, r.skipped, r.byBot, r.needsSlots = result.Raw, result.SkippedBy, result.ByBot, result.NeedsSlots
	if err == nil && result.Shelf != 0 {
		err = r.compareWithShelf(ctx)
	}
	return activities.Spent{}, err
}

// compareWithShelf finds out whether the change was read before, when it was
// shelved. A shelf that is shelved again as it was needs no second review.
func (r *reviewing) compareWithShelf(ctx workflow.Context) error {
	err := book(ctx, "compare", bookkeeping.CompareWithShelf, r.req, &r.onShelf)
	if err == nil && r.onShelf != nil && r.req.Shelved {
		r.skipped = review.SkipRuleSame
	}
	return err
}

// critique is the stage llm: two activities that share one attempt budget. A
// replay does not redact again what was redacted.
func (r *reviewing) critique(ctx workflow.Context) (activities.Spent, error) {
	spent, err := r.adopt(ctx)
	if err != nil || r.verdict.Report != "" {
		return spent, err
	}
	if err := r.admit(ctx); err != nil {
		return spent, err
	}
	if r.redacted == "" {
		var result activities.RedactResult
		err := workflow.ExecuteActivity(r.ranked(forRedaction(ctx, failure.AttemptBudget-spent.Failures)), redacting.Redact,
			activities.StageParams{Request: r.req, Input: r.raw}).Get(ctx, &result)
		if err != nil {
			return spent, err
		}
		r.redacted, spent = result.Redacted, result.Spent
	}
	err = workflow.ExecuteActivity(r.ranked(forModelCall(ctx, failure.AttemptBudget-spent.Failures)), critiquing.Critique,
		activities.StageParams{Request: r.req, Input: r.redacted}).Get(ctx, &r.verdict)
	return spent, err
}

// adopt takes the report of the shelf's review for that of the submit, if the
// submit is of the same content and the report is still there.
func (r *reviewing) adopt(ctx workflow.Context) (activities.Spent, error) {
	if r.onShelf == nil {
		return activities.Spent{}, nil
	}
	var adoption activities.Adoption
	err := workflow.ExecuteActivity(r.ranked(forAdoption(ctx, failure.AttemptBudget)), notifying.AdoptReport,
		activities.StageParams{Request: r.req, Input: r.onShelf.Report}).Get(ctx, &adoption)
	r.verdict = adoption.CritiqueResult
	return adoption.Spent, err
}

// admit waits until no more reviews of the same paths are in flight than may be. A
// replay waits again: it gave its slots back when it died.
func (r *reviewing) admit(ctx workflow.Context) error {
	if !r.needsSlots {
		return nil
	}
	return book(ctx, "admit", bookkeeping.Admit, r.req, nil)
}

// ranked lets an activity after fetch wait behind those of people's changes, if the
// change is a bot's. No history has a command for it: it needs no version.
func (r *reviewing) ranked(ctx workflow.Context) workflow.Context {
	if !r.byBot {
		return ctx
	}
	return workflow.WithPriority(ctx, temporal.Priority{PriorityKey: behindPeople})
}

// notify is the whole stage notify: the mails, then the channels, whatever became
// of the mails. It needs no version: a worker, or a history, that does not know of
// channels apart names none, and has told them with the mails.
func (r *reviewing) notify(ctx workflow.Context) (activities.Spent, error) {
	p := activities.StageParams{Request: r.req, Input: r.verdict.Report, ChannelsApart: true}
	var mailed activities.NotifyResult
	err := workflow.ExecuteActivity(r.ranked(forMail(ctx, failure.AttemptBudget)), notifying.Notify, p).Get(ctx, &mailed)
	if err != nil {
		mailed.Open = activities.OpenChannels(err)
	}
	return activities.Spent{}, r.tell(ctx, p, mailed.Open, err)
}

// tell tells the channels, each on its own. Like each recipient, each is tried as
// often as the stage has attempts. The mails' error, if there is one, speaks first.
func (r *reviewing) tell(ctx workflow.Context, p activities.StageParams, open []activities.ChannelRow, mailed error) error {
	told := make([]workflow.Future, len(open))
	for i, c := range open {
		told[i] = workflow.ExecuteActivity(r.ranked(forChannel(ctx, c.Channel, failure.AttemptBudget)), telling.TellChannel,
			activities.TellParams{StageParams: p, ChannelRow: c})
	}
	first := mailed
	r.untold = nil
	for i, c := range open {
		if err := told[i].Get(ctx, nil); err != nil {
			r.untold = append(r.untold, string(c.Channel))
			first = cmp.Or(first, err)
		}
	}
	return first
}

// cancel tells the job's row and passes the cancellation on.
func (r *reviewing) cancel(ctx workflow.Context, canceled error) error {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := book(ctx, "cancel", bookkeeping.CancelJob, r.req, nil); err != nil {
		return err
	}
	return canceled
}

// refuse ends a workflow whose request cannot be carried out as it stands.
func refuse(message string) error {
	return temporal.NewNonRetryableApplicationError(message, string(failure.InputInvalid), nil)
}
