package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *console) deadletterCommand() *cobra.Command {
	return group("deadletter", "List, show, replay, resolve or annotate dead letters",
		`A dead letter records a stage of a review that used its attempt budget or met an
error that no retry can fix. docs/runbook.md has the action for each class.`,
		c.deadletterListCommand(), c.deadletterShowCommand(), c.replayCommand(), c.resolveCommand(), c.annotateCommand())
}

// classAndStage adds the flags that choose dead letters by what failed.
func classAndStage(cmd *cobra.Command, filter *store.LetterFilter) {
	wordFlag(cmd, &filter.Class, "class", "only dead letters of this error `CLASS`, such as AUTH_DENIED", errorClasses()...)
	wordFlag(cmd, &filter.Stage, "stage", "only dead letters of this `STAGE`: fetch, llm or notify", review.StageFetch, review.StageLLM, review.StageNotify)
}

func (c *console) deadletterListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters",
		Example: `  criticizer deadletter list --class AUTH_DENIED --stage llm
  criticizer deadletter list --older-than 24h`,
	}
	const all store.LetterState = "all"
	var filter store.LetterFilter
	var state store.LetterState
	classAndStage(cmd, &filter)
	flagOf(cmd, &filter.OlderThan, "older-than", "only dead letters recorded more than this `DURATION` ago", positive)
	cmd.Flags().BoolVar(&filter.Escalated, "escalated", false, "only dead letters whose replay failed for the same reason")
	cmd.Flags().BoolVar(&filter.Unexplained, "unexplained", false, "only dead letters that were reset without a replay record, in any state")
	wordFlag(cmd, &state, "state", "only dead letters in this `STATE`: open, replaying, failed_again, resolved or all (default open and replaying)",
		append(letterStates, all)...)
	return list(c, cmd, nil, letterTable, func(ctx context.Context, db *store.DB) ([]store.DeadLetter, error) {
		switch {
		case state == "" && !filter.Unexplained:
			filter.States = unresolved
		case state != "" && state != all:
			filter.States = []store.LetterState{state}
		}
		return db.DeadLetters(ctx, filter)
	})
}

func (c *console) deadletterShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show everything about one dead letter",
		ValidArgsFunction: first(c.letterIDs()),
	}
	cmd.RunE = c.onLetter(func(ctx context.Context, db *store.DB, l store.DeadLetter) error {
		letter, err := completeLetter(ctx, db, l)
		if err != nil {
			return err
		}
		return c.print(letter, func(w io.Writer) {
			letter.print(w, "")
			letter.printDetails(w)
		})
	})
	return cmd
}

// onRow reads the dead letter or delivery whose ID is the first operand, and calls act with
// it and the other operands.
func onRow[T any](c *console, of string, find func(context.Context, *store.DB, int64) (T, error), act func(context.Context, *store.DB, T, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := parseID(of, args[0])
		if err != nil {
			return err
		}
		return c.onDatabase(func(ctx context.Context, db *store.DB, args []string) error {
			row, err := find(ctx, db, id)
			if err != nil {
				return err
			}
			return act(ctx, db, row, args[1:])
		})(cmd, args)
	}
}

// onLetter calls act with the dead letter that the operand names.
func (c *console) onLetter(act func(context.Context, *store.DB, store.DeadLetter) error) func(*cobra.Command, []string) error {
	return onRow(c, "dead letter", findLetter, func(ctx context.Context, db *store.DB, l store.DeadLetter, _ []string) error { return act(ctx, db, l) })
}

// statementFlag adds a flag whose text goes into the audit log, and checks the text before
// cmd runs.
func statementFlag(cmd *cobra.Command, flag, preset, usage string) *string {
	text := cmd.Flags().String(flag, preset, usage)
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		*text, err = statement(flag, *text)
		return err
	}
	return text
}

func (c *console) resolveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resolve ID", Short: "Close a dead letter without a replay",
		Long:              `Closes a dead letter whose review was done by hand or is not needed.`,
		Example:           `  criticizer deadletter resolve 12 --reason "INC-42: reviewed by hand"`,
		ValidArgsFunction: first(c.letterIDs()),
	}
	reason := statementFlag(cmd, "reason", "", "what was done and where it is recorded: `TEXT` for the audit log (required)")
	cmd.RunE = c.onLetter(func(ctx context.Context, db *store.DB, l store.DeadLetter) error {
		if l.State == store.LetterResolved {
			return advise(fmt.Errorf("dead letter %d is resolved already, %s", l.ID, byWhom(l.ResolvedBy, l.Resolution)),
				"criticizer deadletter annotate %d --note TEXT adds a note", l.ID)
		}
		if err := db.ResolveDeadLetter(ctx, l.ID, c.operator(), *reason); err != nil {
			return err
		}
		return c.done("dead letter %d, %s: resolved", l.ID, reviewName(l.Changelist, l.Version))
	})
	return cmd
}

func (c *console) annotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "annotate ID", Short: "Add a note to a dead letter",
		Example:           `  criticizer deadletter annotate 12 --note "INC-42: key expires in May"`,
		ValidArgsFunction: first(c.letterIDs()),
	}
	note := statementFlag(cmd, "note", "", "the note: `TEXT` for the audit log (required)")
	cmd.RunE = c.onLetter(func(ctx context.Context, db *store.DB, l store.DeadLetter) error {
		if err := db.AnnotateDeadLetter(ctx, l.ID, c.operator(), *note); err != nil {
			return err
		}
		return c.done("dead letter %d, %s: noted", l.ID, reviewName(l.Changelist, l.Version))
	})
	return cmd
}

func (c *console) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay [ID...]", Short: "Run the failed stage of dead letters again",
		Long: `Runs the failed stage again and the stages after it; completed stages are not
run again. The dead letters are named by ID or chosen by --class. The command
prints what it is going to do before it does it.`,
		Example: `  criticizer deadletter replay 12 --reason "INC-42: API key renewed"
  criticizer deadletter replay --class AUTH_DENIED --reason "INC-42: API key renewed" --dry-run`,
		ValidArgsFunction: c.letterIDs(),
	}
	var order replayOrder
	classAndStage(cmd, &order.filter)
	cmd.Flags().StringVar(&order.reason, "reason", "", "what was fixed and where it is recorded: `TEXT` for Temporal's history and the audit log (required)")
	cmd.Flags().BoolVar(&order.full, "full", false, "full restart: run all stages again")
	cmd.Flags().BoolVar(&order.dryRun, "dry-run", false, "print what would be replayed, and exit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := order.parse(args); err != nil {
			return err
		}
		return c.replay(cmd.Context(), order)
	}
	return cmd
}

func (c *console) replay(ctx context.Context, order replayOrder) error {
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
	r := replayer{replayOrder: order, db: db, runs: temporal, who: c.operator()}
	letters, err := r.choose(ctx)
	if err != nil {
		return err
	}
	c.announce(r, letters)
	if order.dryRun {
		c.note("nothing was done: --dry-run")
		return c.print(letters, func(io.Writer) {})
	}
	return c.replayAll(ctx, r, letters)
}

// announce prints what is going to be replayed.
func (c *console) announce(r replayer, letters []store.DeadLetter) {
	letters = slices.DeleteFunc(slices.Clone(letters), func(l store.DeadLetter) bool { return notReplayable(l) != nil })
	if len(letters) == 0 || c.format == formatJSON {
		return
	}
	from := "the failed stage"
	if r.full {
		from = "the first stage"
	}
	fmt.Fprintf(c.stdout, "replay %s from %s, as %s\nreason: %s\n", plural(len(letters), "dead letter"), from, r.who, r.reason)
	writeTable(c.stdout, "  ", letterTable.rows(letters))
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

// replayAll replays the dead letters and reports on each.
func (c *console) replayAll(ctx context.Context, r replayer, letters []store.DeadLetter) error {
	results, failed := []replayResult{}, false
	for _, l := range letters {
		result := replayResult{ID: l.ID, Changelist: l.Changelist, Version: l.Version, Result: "replayed"}
		run, err := r.replay(ctx, l.ID)
		_, settled := errors.AsType[settledError](err)
		switch {
		case err == nil:
			result.RunID = run
		case settled && !r.named():
			result.Result, result.Error = "skipped", err.Error()
		default:
			failed = true
			result.Result, result.Error = "failed", err.Error()
			c.report(err)
		}
		results = append(results, result)
	}
	err := printList(c, results, table[replayResult]{"nothing to replay", []string{"ID", "CHANGELIST", "RESULT", "RUN OR REASON"}, func(r replayResult) []any {
		return []any{r.ID, versionCell(r.Changelist, r.Version), r.Result, r.RunID + r.Error}
	}})
	if err == nil && failed {
		return errReported
	}
	return err
}
