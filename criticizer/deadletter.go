package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) deadletterCommand() *cobra.Command {
	return group("deadletter", "List, show, replay, resolve or annotate dead letters",
		`A dead letter records a stage of a review that used its attempt budget or met an
error that no retry can fix. For the action of each class: criticizer help runbook.md`,
		c.deadletterListCommand(), c.deadletterShowCommand(), c.replayCommand(), c.resolveCommand(), c.annotateCommand())
}

// classAndStage adds the flags that choose dead letters by what failed.
func classAndStage(cmd *cobra.Command, filter *store.DeadLetterFilter) {
	wordFlag(cmd, &filter.Class, "class", "only of this error `CLASS`, such as AUTH_DENIED", errorClasses()...)
	wordFlag(cmd, &filter.Stage, "stage", "only of this `STAGE`: fetch, llm or notify", review.Stages()...)
}

func (c *app) deadletterListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters",
		Example: "  criticizer deadletter list --class AUTH_DENIED --older-than 24h",
	}
	const all store.DeadLetterState = "all"
	var filter store.DeadLetterFilter
	var state store.DeadLetterState
	classAndStage(cmd, &filter)
	flagOf(cmd, &filter.OlderThan, "older-than", "only those recorded more than `DURATION` ago", positive)
	cmd.Flags().BoolVar(&filter.Escalated, "escalated", false, "only those whose replay failed for the same reason")
	cmd.Flags().BoolVar(&filter.Unexplained, "unexplained", false, "only those with a reset that has no reason and is not acknowledged")
	wordFlag(cmd, &state, "state", "only in this `STATE`: open, replaying, failed_again, resolved or all (default open and replaying)",
		append(deadLetterStates, all)...)
	return list(c, cmd, nil, deadLetterTable, func(ctx context.Context, db *store.DB) ([]store.DeadLetter, error) {
		switch {
		case state == "" && !filter.Unexplained:
			filter.States = unresolved
		case state != "" && state != all:
			filter.States = []store.DeadLetterState{state}
		}
		return db.DeadLetters(ctx, filter)
	})
}

func (c *app) deadletterShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show everything about one dead letter",
		RunE: onRow(c, "dead letter", findDeadLetter, func(ctx context.Context, db *store.DB, l store.DeadLetter, _ []string) error {
			cfg, err := c.config(settings.RoleOperator)
			if err != nil {
				return err
			}
			letter, err := completeDeadLetter(ctx, db, cfg, l)
			if err != nil {
				return err
			}
			return c.print(letter, func(w io.Writer) {
				letter.print(w, "")
				letter.printDetails(w)
			})
		}),
	}
}

func (c *app) resolveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resolve [ID...]", Short: "Close dead letters without a replay",
		Long: `Closes dead letters whose review was done by hand or is not needed. They are
named by ID or chosen by --class, --stage, --changelist and --older-than. A dead
letter that is being replayed must be named.`,
		Example: `  criticizer deadletter resolve 12 --reason "INC-42: reviewed by hand"
  criticizer deadletter resolve --class INPUT_INVALID --reason "INC-43: started twice" --dry-run`,
	}
	chosen := chooseLetters(cmd)
	reason := operator.StatementFlag(cmd, "reason", "", "what was done: `TEXT` for the audit log (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := chosen.parse(cmd, args); err != nil {
			return err
		}
		return c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
			letters, err := chosen.read(ctx, db)
			if err != nil {
				return err
			}
			refuses := func(l store.DeadLetter) error {
				switch {
				case l.State == store.DeadLetterResolved:
					return settled(l, fmt.Sprintf(`to add a note: criticizer deadletter annotate %d --note "TEXT"`, l.ID), "is resolved already, %s", byWhom(l.ResolvedBy, l.Resolution))
				case l.State == store.DeadLetterReplaying && !l.Interrupted && !chosen.named(): // its next failure is escalated only if it is replaying
					return settled(l, fmt.Sprintf("to see the state of its review: criticizer status %d", l.Changelist), "is being replayed: name it to resolve it nevertheless")
				}
				return nil
			}
			return chosen.run(c, letters, "resolved", refuses, func(l store.DeadLetter) (string, error) {
				if err := refuses(l); err != nil {
					return "", err
				}
				return "", db.ResolveDeadLetter(ctx, l.ID, operator.Name(c.getenv), *reason)
			})
		})(cmd, args)
	}
	return cmd
}

func (c *app) annotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "annotate ID", Short: "Add a note to a dead letter, or acknowledge its unexplained replay",
		Example: `  criticizer deadletter annotate 12 --note "INC-42: key expires in May"`,
	}
	note := operator.StatementFlag(cmd, "note", "", "`TEXT` for the audit log (required)")
	cmd.RunE = onRow(c, "dead letter", findDeadLetter, func(ctx context.Context, db *store.DB, l store.DeadLetter, _ []string) error {
		acknowledged, err := db.AnnotateDeadLetter(ctx, l.ID, operator.Name(c.getenv), *note)
		if err != nil {
			return err
		}
		said := "noted"
		if acknowledged > 0 {
			said += ", and its unexplained replay acknowledged"
		}
		return c.done("dead letter %d, %s: %s", l.ID, reviewName(l.Changelist, l.Version), said)
	})
	return cmd
}

var deadLetterTable = table[store.DeadLetter]{
	empty:  "no dead letters",
	header: []string{"ID", "CHANGELIST", "STAGE", "CLASS", "STATE", "AGE", "TRIES", "MARKS"},
	cells: func(l store.DeadLetter) []any {
		return []any{l.ID, versionCell(l.Changelist, l.Version), l.Stage, l.ErrorClass, l.State, operator.Age(time.Since(l.RecordedAt)), l.Attempts, marks(l)}
	},
	wide: &table[store.DeadLetter]{
		header: []string{"WORKFLOW", "RUN"},
		cells:  func(l store.DeadLetter) []any { return []any{l.WorkflowID, l.RunID} },
	},
}
