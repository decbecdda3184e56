package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay [ID...]", Short: "Run the failed stage of dead letters again",
		Long: `Runs the failed stage again and the stages after it; completed stages are not
run again. The dead letters are named by ID or chosen by --class, --stage,
--changelist and --older-than.

An escalated dead letter, whose replay failed for the same reason, is left out:
engineering acts first. Then name it, with --escalated and --note.`,
		Example: `  criticizer deadletter replay 12 --reason "INC-42: API key renewed"
  criticizer deadletter replay --class AUTH_DENIED --reason "INC-42: API key renewed" --dry-run
  criticizer deadletter replay 14 --escalated --note "INC-42: fixed by build 7" --reason "INC-42: fixed"`,
	}
	chosen := chooseLetters(cmd)
	reason := operator.StatementFlag(cmd, "reason", "", "what was fixed: `TEXT` for the audit log (required)")
	full := cmd.Flags().Bool("full", false, "full restart: run all stages again")
	escalated := cmd.Flags().Bool("escalated", false, "also replay escalated ones, which must be named")
	note := cmd.Flags().String("note", "", "what engineering has found or done: `TEXT` for the audit log, with --escalated")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := chosen.parse(cmd, args); err != nil {
			return err
		}
		if *escalated != (*note != "") || *escalated && !chosen.named() {
			return badUsage("--escalated wants IDs and --note TEXT")
		}
		if *escalated {
			if *note, err = operator.Statement("note", *note); err != nil {
				return err
			}
		}
		ctx := cmd.Context()
		db, cfg, err := c.database(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		temporal, err := dialTemporal(ctx, cfg)
		if err != nil {
			return err
		}
		defer temporal.Close()
		letters, err := chosen.read(ctx, db)
		if err != nil {
			return err
		}
		r := replayer{db, temporal, operator.Name(c.getenv), *reason, *note, *full}
		return chosen.run(c, letters, "replayed", func(l store.DeadLetter) error { return r.refuses(ctx, l) },
			func(l store.DeadLetter) (string, error) { return r.replay(ctx, l.ID) })
	}
	return cmd
}

// A replayer replays a dead letter (processing 8.5): it records the request, resets the run,
// and confirms the reset.
type replayer struct {
	db          *store.DB
	runs        runs
	who, reason string
	note        string // of engineering about an escalated letter, or empty
	full        bool
}

func settled(l store.DeadLetter, hint, format string, args ...any) error {
	return settledError{advise(fmt.Errorf("dead letter %d %s", l.ID, fmt.Sprintf(format, args...)), "%s", hint)}
}

// refuses returns why a dead letter cannot be replayed in its state, or nil. A stage notify whose
// recipients are all settled, one of them as refused, would fail again.
func (r replayer) refuses(ctx context.Context, l store.DeadLetter) error {
	status := fmt.Sprintf("to see the state of its review: criticizer status %d", l.Changelist)
	switch {
	case l.State == store.DeadLetterResolved:
		return settled(l, fmt.Sprintf("to review the changelist again: criticizer-starter change-commit --review-version %d %d", l.Version+1, l.Changelist), "is resolved: there is nothing to replay")
	case l.State == store.DeadLetterFailedAgain:
		return settled(l, status, "was replayed already and failed again: replay its new dead letter")
	case l.State != store.DeadLetterOpen && !l.Interrupted:
		return settled(l, status, "is being replayed already")
	case l.Escalated && r.note == "":
		return settled(l, fmt.Sprintf(`pass it to engineering; after their fix: criticizer deadletter replay %d --escalated --note "WHAT THEY FIXED" --reason "WHY"`, l.ID), "is escalated: its replay failed for the same reason")
	case l.ErrorClass != failure.RecipientRejected:
		return nil
	}
	rows, err := r.db.FindDeliveries(ctx, store.DeliveryFilter{Changelist: l.Changelist})
	refused := int64(0)
	for _, d := range rows {
		switch {
		case d.Version != l.Version:
		case d.Status == review.DeliveryPending:
			return nil
		case d.Status == review.DeliveryFailed:
			refused = d.ID
		}
	}
	if err == nil && refused != 0 {
		return settled(l, fmt.Sprintf(`readdress it, resend it, or do without it, then replay; to do without it: criticizer delivery waive %d --reason "WHY"`, refused), "would fail again: delivery %d was refused for good, and no other waits", refused)
	}
	return err
}

// replay replays one dead letter and returns the ID of the new run. It reads the
// dead letter under a lock, so that one of two operators acts.
func (r replayer) replay(ctx context.Context, id int64) (newRunID string, err error) {
	release, ok, err := r.db.HoldDeadLetter(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", settledError{advise(fmt.Errorf("dead letter %d is being replayed by another operator", id), "to see the result: criticizer deadletter show %d", id)}
	}
	defer release()
	l, err := findDeadLetter(ctx, r.db, id)
	if err != nil {
		return "", err
	}
	if err := r.refuses(ctx, l); err != nil {
		return "", err
	}
	current, err := r.runs.current(ctx, l.WorkflowID)
	switch {
	case errors.Is(err, errForgotten):
		return "", advise(fmt.Errorf("dead letter %d cannot be replayed: %w", l.ID, err),
			"start the review again: criticizer-starter change-commit --review-version %d --key %s %d", l.Version, l.WorkflowID, l.Changelist)
	case err != nil:
		return "", err
	case current.ID != l.RunID && l.State == store.DeadLetterOpen && current.closed:
		l.RunID = current.ID // an earlier replay was terminated: continue from its run
	case current.ID != l.RunID:
		return r.finish(ctx, l, current)
	case !current.closed:
		return "", settled(l, "wait a moment and try again", "belongs to a run that has not ended yet")
	}
	return r.reset(ctx, l)
}

// reset records the request, then resets the run. It withdraws the request only
// if the reset certainly did not happen; if that is unknown, the next replay
// finds out.
func (r replayer) reset(ctx context.Context, l store.DeadLetter) (newRunID string, err error) {
	request, err := r.db.RequestReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: r.who, Reason: r.reason, Note: r.note, Full: r.full})
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
		return r.finish(ctx, l, current)
	}
	return "", errors.Join(advise(fmt.Errorf("dead letter %d was not replayed: %w", l.ID, err),
		"it is open again: try again when Temporal can reset the run"), r.db.WithdrawReplay(ctx, request))
}

func (r replayer) confirm(ctx context.Context, l store.DeadLetter, request store.ReplayRequest, newRun string) (string, error) {
	if err := r.db.ConfirmReplay(context.WithoutCancel(ctx), request, newRun); err != nil {
		return "", advise(fmt.Errorf("dead letter %d is replayed by run %s, but that could not be recorded: %w", l.ID, newRun, err),
			"when the database responds again, run the same command again: it records the replay and resets nothing")
	}
	return newRun, nil
}

// finish confirms a replay that was interrupted between reset and confirmation:
// the current run belongs to it if the reset has its reason. Otherwise the run
// was reset by other means, and there is nothing left to replay.
func (r replayer) finish(ctx context.Context, l store.DeadLetter, current runView) (newRunID string, err error) {
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
	return "", settled(l, fmt.Sprintf("to see the state of its review: criticizer status %d", l.Changelist),
		"was reset by other means: run %s has taken its place", current.ID)
}
