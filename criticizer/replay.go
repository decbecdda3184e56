package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay [ID...]", Short: "Run the failed stage of dead letters again",
		Long: `Runs the failed stage again and the stages after it; completed stages are not
run again. The dead letters are named by ID or chosen by --class.`,
		Example: `  criticizer deadletter replay 12 --reason "INC-42: API key renewed"
  criticizer deadletter replay --class AUTH_DENIED --reason "INC-42: API key renewed" --dry-run`,
	}
	var filter store.DeadLetterFilter
	classAndStage(cmd, &filter)
	reason := statementFlag(cmd, "reason", "", "what was fixed: `TEXT` for the audit log (required)")
	full := cmd.Flags().Bool("full", false, "full restart: run all stages again")
	dryRun := cmd.Flags().Bool("dry-run", false, "print what would be replayed, and exit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && filter.Class == "":
			return badUsage("replay wants IDs of dead letters, or --class CLASS")
		case len(args) > 0 && (filter.Class != "" || filter.Stage != ""):
			return badUsage("replay wants IDs or --class, not both")
		case len(args) == 0:
			filter.States = unresolved
		}
		for _, arg := range args {
			id, err := parseID("dead letter", arg)
			if err != nil {
				return err
			}
			if !slices.Contains(filter.IDs, id) {
				filter.IDs = append(filter.IDs, id)
			}
		}
		db, cfg, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		temporal, err := dialTemporal(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer temporal.Close()
		return c.replay(cmd.Context(), replayer{db, temporal, c.operator(), *reason, *full}, filter, *dryRun)
	}
	return cmd
}

// A replayResult is the result of the replay of one dead letter.
type replayResult struct {
	ID         int64             `json:"id"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Result     string            `json:"result"` // replayed, skipped or failed
	RunID      string            `json:"run_id,omitempty"`
	Error      string            `json:"error,omitempty"`
}

// replay replays the dead letters that filter chooses, one after another, and reports on
// each. One that is named and cannot be replayed is a failure; one that is chosen by its class
// is skipped. If one of the IDs does not exist, none is replayed: it may be a typing error.
func (c *app) replay(ctx context.Context, r replayer, filter store.DeadLetterFilter, dryRun bool) error {
	letters, err := r.db.DeadLetters(ctx, filter)
	if err != nil {
		return err
	}
	for _, id := range filter.IDs {
		if !slices.ContainsFunc(letters, func(l store.DeadLetter) bool { return l.ID == id }) {
			return advise(fmt.Errorf("dead letter %d does not exist: nothing was replayed", id), "criticizer deadletter list shows the unresolved ones")
		}
	}
	replayable := slices.DeleteFunc(slices.Clone(letters), func(l store.DeadLetter) bool { return notReplayable(l) != nil })
	if len(replayable) > 0 && c.format != formatJSON {
		from := "the failed stage"
		if r.full {
			from = "the first stage"
		}
		fmt.Fprintf(c.stdout, "replay %s from %s, as %s\nreason: %s\n", plural(len(replayable), "dead letter"), from, r.who, r.reason)
		writeTable(c.stdout, "  ", deadLetterTable.rows(replayable))
	}
	if dryRun {
		c.note("nothing was done: --dry-run")
		return c.print(letters, func(io.Writer) {})
	}
	results, failed := []replayResult{}, false
	for _, l := range letters {
		result := replayResult{ID: l.ID, Changelist: l.Changelist, Version: l.Version, Result: "replayed"}
		run, err := r.replay(ctx, l.ID)
		_, settled := errors.AsType[settledError](err)
		switch {
		case err == nil:
			result.RunID = run
		case settled && len(filter.IDs) == 0:
			result.Result, result.Error = "skipped", err.Error()
		default:
			failed = true
			result.Result, result.Error = "failed", err.Error()
			c.report(err)
		}
		results = append(results, result)
	}
	err = printList(c, results, table[replayResult]{"nothing to replay", []string{"ID", "CHANGELIST", "RESULT", "RUN OR REASON"}, func(r replayResult) []any {
		return []any{r.ID, versionCell(r.Changelist, r.Version), r.Result, r.RunID + r.Error}
	}})
	if err == nil && failed {
		return errReported
	}
	return err
}

// A replayer replays a dead letter (processing 8.5): it records the request, resets the run,
// and confirms the reset.
type replayer struct {
	db          *store.DB
	runs        runs
	who, reason string
	full        bool
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
	case l.State == store.DeadLetterOpen, l.Interrupted:
		return nil
	case l.State == store.DeadLetterResolved:
		return settled(l, "to review the changelist again, use criticizer-starter change-commit with a new --review-version", "is resolved: there is nothing to replay")
	case l.State == store.DeadLetterFailedAgain:
		return settled(l, status, "was replayed already and failed again: replay its new dead letter")
	}
	return settled(l, status, "is being replayed already")
}

// replay replays one dead letter and returns the ID of the new run. It reads the
// dead letter under a lock, so that one of two operators acts.
func (r replayer) replay(ctx context.Context, id int64) (newRunID string, err error) {
	release, ok, err := r.db.HoldDeadLetter(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", settledError{advise(fmt.Errorf("dead letter %d is being replayed by another operator", id), "criticizer deadletter show %d shows the result", id)}
	}
	defer release()
	l, err := findDeadLetter(ctx, r.db, id)
	if err != nil {
		return "", err
	}
	if err := notReplayable(l); err != nil {
		return "", err
	}
	current, err := r.runs.current(ctx, l.WorkflowID)
	switch {
	case errors.Is(err, errForgotten):
		return "", advise(fmt.Errorf("dead letter %d cannot be replayed: %w", l.ID, err),
			"start the review again: criticizer-starter change-commit --review-version %d --key %s %d", l.Version, l.WorkflowID, l.Changelist)
	case err != nil:
		return "", advise(err, adviceTemporal)
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
	return "", settled(l, fmt.Sprintf("criticizer status %d shows the state of its review", l.Changelist),
		"was reset by other means: run %s has taken its place", current.ID)
}
