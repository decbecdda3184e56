package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/store"
)

// A replayOrder is what the command line of deadletter replay asks for.
type replayOrder struct {
	// The dead letters are named by ids, or else chosen by filter. One that was
	// named and cannot be replayed is a failure; one that was chosen is skipped.
	ids          []int64
	filter       store.LetterFilter
	reason       string
	full, dryRun bool
}

func (o *replayOrder) named() bool { return len(o.ids) > 0 }

func (o *replayOrder) parse(args []string) (err error) {
	for _, arg := range args {
		id, err := parseID("dead letter", arg)
		if err != nil {
			return err
		}
		if !slices.Contains(o.ids, id) {
			o.ids = append(o.ids, id)
		}
	}
	switch {
	case !o.named() && o.filter.Class == "":
		return badUsage("replay wants IDs of dead letters, or --class CLASS")
	case o.named() && (o.filter.Class != "" || o.filter.Stage != ""):
		return badUsage("replay wants IDs or --class, not both")
	}
	o.filter.States = unresolved
	o.reason, err = statement("reason", o.reason)
	return err
}

// A replayer replays dead letters one after another (processing 8.5): it records
// the request, resets the run, and confirms the reset.
type replayer struct {
	replayOrder
	db   *store.DB
	runs runs
	who  string
}

// choose reads the dead letters to replay. If one of the IDs does not exist, none
// is replayed: it may be a typing error.
func (r *replayer) choose(ctx context.Context) ([]store.DeadLetter, error) {
	filter := r.filter
	if r.named() {
		filter = store.LetterFilter{IDs: r.ids}
	}
	letters, err := r.db.DeadLetters(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, id := range r.ids {
		if !slices.ContainsFunc(letters, func(l store.DeadLetter) bool { return l.ID == id }) {
			return nil, advise(fmt.Errorf("dead letter %d does not exist: nothing was replayed", id), "criticizer deadletter list shows the unresolved ones")
		}
	}
	return letters, nil
}

// A settledError means that a dead letter needs no replay: it is resolved, or
// another run has taken its place.
type settledError struct{ error }

func (s settledError) Unwrap() error { return s.error }

func settled(l store.DeadLetter, hint, format string, args ...any) error {
	return settledError{advise(fmt.Errorf("dead letter %d %s", l.ID, fmt.Sprintf(format, args...)), "%s", hint)}
}

// notReplayable returns why a dead letter cannot be replayed in its state, or nil.
func notReplayable(l store.DeadLetter) error {
	status := fmt.Sprintf("criticizer status %d shows the state of its review", l.Changelist)
	switch {
	case l.State == store.LetterOpen, l.Interrupted:
		return nil
	case l.State == store.LetterResolved:
		return settled(l, "to review the changelist again, use criticizer-starter change-commit with a new --review-version", "is resolved: there is nothing to replay")
	case l.State == store.LetterFailedAgain:
		return settled(l, status, "was replayed already and failed again: replay its new dead letter")
	}
	return settled(l, status, "is being replayed already")
}

// replay replays one dead letter and returns the ID of the new run. It reads the
// dead letter under a lock, so that one of two operators acts.
func (r *replayer) replay(ctx context.Context, id int64) (newRunID string, err error) {
	release, ok, err := r.db.HoldDeadLetter(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", settledError{advise(fmt.Errorf("dead letter %d is being replayed by another operator", id), "criticizer deadletter show %d shows the result", id)}
	}
	defer release()
	l, err := findLetter(ctx, r.db, id)
	if err != nil {
		return "", err
	}
	if err := notReplayable(l); err != nil {
		return "", err
	}
	current, err := r.current(ctx, l)
	switch {
	case err != nil:
		return "", err
	case current.ID != l.RunID && l.State == store.LetterOpen && current.closed:
		l.RunID = current.ID // an earlier replay was terminated: continue from its run
	case current.ID != l.RunID:
		return r.adopt(ctx, l, current)
	case !current.closed:
		return "", settled(l, "wait a moment and try again", "belongs to a run that has not ended yet")
	}
	return r.reset(ctx, l)
}

func (r *replayer) current(ctx context.Context, l store.DeadLetter) (runView, error) {
	current, err := r.runs.current(ctx, l.WorkflowID)
	if errors.Is(err, errForgotten) {
		return current, advise(fmt.Errorf("dead letter %d cannot be replayed: %w", l.ID, err),
			"start the review again: criticizer-starter change-commit --review-version %d --key %s %d", l.Version, l.WorkflowID, l.Changelist)
	}
	if err != nil {
		return current, advise(err, "check that the Temporal server is up and that temporal.address names it")
	}
	return current, nil
}

// reset records the request, then resets the run. It withdraws the request only
// if the reset certainly did not happen; if that is unknown, the next replay
// finds out.
func (r *replayer) reset(ctx context.Context, l store.DeadLetter) (newRunID string, err error) {
	request, err := r.db.RequestReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: r.who, Reason: r.reason, Full: r.full})
	if err != nil {
		return "", err
	}
	newRun, err := r.runs.reset(ctx, l, request)
	if err == nil {
		return r.confirm(ctx, l, request, newRun)
	}
	// Ctrl-C may have ended the reset; its result is still needed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	current, unknown := r.runs.current(ctx, l.WorkflowID)
	switch {
	case unknown != nil:
		return "", advise(fmt.Errorf("dead letter %d: it is not known whether the reset happened: %w", l.ID, err),
			"when Temporal responds again, run the same command again: it finds out first")
	case current.ID != l.RunID:
		return r.adopt(ctx, l, current)
	}
	return "", errors.Join(advise(fmt.Errorf("dead letter %d was not replayed: %w", l.ID, err),
		"it is open again: try again when Temporal can reset the run"), r.db.WithdrawReplay(ctx, request))
}

func (r *replayer) confirm(ctx context.Context, l store.DeadLetter, request store.ReplayRequest, newRun string) (string, error) {
	if err := r.db.ConfirmReplay(context.WithoutCancel(ctx), request, newRun); err != nil {
		return "", advise(fmt.Errorf("dead letter %d is replayed by run %s, but that could not be recorded: %w", l.ID, newRun, err),
			"when the database responds again, run the same command again: it records the replay and resets nothing")
	}
	return newRun, nil
}

// adopt confirms a replay that was interrupted between reset and confirmation:
// the current run belongs to it if the reset has its reason. Otherwise the run
// was reset by other means, and there is nothing left to replay.
func (r *replayer) adopt(ctx context.Context, l store.DeadLetter, current runView) (newRunID string, err error) {
	pending, interrupted, err := r.db.InterruptedReplay(ctx, l.ID)
	if err != nil {
		return "", err
	}
	if interrupted {
		_, reason, err := r.runs.ResetOf(ctx, l.WorkflowID, current.ID)
		if err != nil {
			return "", err
		}
		if reason == pending.Reason {
			return r.confirm(ctx, l, pending, current.ID)
		}
	}
	return "", settled(l, fmt.Sprintf("criticizer status %d shows the state of its review", l.Changelist),
		"was reset by other means: run %s has taken its place", current.ID)
}
