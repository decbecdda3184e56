package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// An itemResult is what a command did with one of several dead letters or deliveries.
type itemResult struct {
	ID         int64             `json:"id"`
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Result     string            `json:"result"` // what was done, skipped or failed
	RunID      string            `json:"run_id,omitempty"`
	Error      string            `json:"error,omitempty"`
}

// A settledError means that nothing has to be done, or nothing can be done yet, about an item.
type settledError struct{ error }

func (s settledError) Unwrap() error { return s.error }

// A bulk is what a command does about dead letters or deliveries, one after another. They were
// named by ID or chosen by a filter.
type bulk[T any] struct {
	done          string // what is done to an item, such as replayed
	named, dryRun bool
	table         table[T] // of a dry run
	as            func(T) itemResult
	// possible reports for a dry run whether act would do something.
	possible func(T) (bool, error)
	act      func(T) (run string, err error)
}

// run acts on items, or with --dry-run prints those on which it would act. It reports on each item
// and on all. An item that a filter chose and about which nothing is to be done is skipped; if it
// was named, it has failed. The exit status is 1 if one has failed.
func (b bulk[T]) run(c *app, items []T) error {
	if b.dryRun {
		return b.preview(c, items)
	}
	results, counts := []itemResult{}, map[string]int{}
	for _, item := range items {
		run, err := b.act(item)
		if err != nil && b.named && len(items) == 1 {
			return err
		}
		result := b.as(item)
		result.Result, result.RunID = b.done, run
		_, settled := errors.AsType[settledError](err)
		switch {
		case err == nil:
		case !b.named && (settled || failure.ClassOf(err) == failure.WriteConflict):
			result.Result, result.Error = "skipped", err.Error()
		default:
			result.Result, result.Error = "failed", err.Error()
			operator.Report(c.stderr, "criticizer", err)
		}
		counts[result.Result]++
		results = append(results, result)
	}
	err := printList(c, results, table[itemResult]{empty: "nothing to do", header: []string{"ID", "CHANGELIST", "RESULT", "RUN OR REASON"}, cells: func(r itemResult) []any {
		return []any{r.ID, versionCell(r.Changelist, r.Version), r.Result, r.RunID + r.Error}
	}})
	if !b.named || len(results) > 1 {
		c.note("%s: %d, skipped: %d, failed: %d", b.done, counts[b.done], counts["skipped"], counts["failed"])
	}
	if err == nil && counts["failed"] > 0 {
		return operator.ErrReported
	}
	return err
}

func (b bulk[T]) preview(c *app, items []T) error {
	would := []T{}
	for _, item := range items {
		switch ok, err := b.possible(item); {
		case err != nil:
			return err
		case ok:
			would = append(would, item)
		}
	}
	err := printList(c, would, b.table)
	c.note("would be %s: %d, skipped: %d; nothing was done: --dry-run", b.done, len(would), len(items)-len(would))
	return err
}

// A letterChoice are the dead letters that a command acts on: named by ID, or chosen by a filter.
type letterChoice struct {
	filter store.DeadLetterFilter
	dryRun bool
}

// chooseLetters adds the flags of the choice.
func chooseLetters(cmd *cobra.Command) *letterChoice {
	choice := new(letterChoice)
	classAndStage(cmd, &choice.filter)
	flagOf(cmd, &choice.filter.Changelist, "changelist", "only those of this changelist `N`", review.ParseChangelist)
	flagOf(cmd, &choice.filter.OlderThan, "older-than", "only those recorded more than this `DURATION` ago", positive)
	cmd.Flags().BoolVar(&choice.dryRun, "dry-run", false, "print what would be done, and exit")
	return choice
}

func (c *letterChoice) named() bool { return len(c.filter.IDs) > 0 }

// parse reads the operands.
func (c *letterChoice) parse(cmd *cobra.Command, args []string) error {
	f := &c.filter
	chosen := f.Class != "" || f.Stage != "" || f.Changelist != 0 || f.OlderThan != 0
	switch {
	case len(args) == 0 && !chosen:
		return badUsage("%s wants IDs of dead letters, or a filter such as --class CLASS", cmd.Name())
	case len(args) > 0 && chosen:
		return badUsage("%s wants IDs or a filter, not both", cmd.Name())
	case len(args) == 0:
		f.States = unresolved
	}
	for _, arg := range args {
		id, err := parseID("dead letter", arg)
		if err != nil {
			return err
		}
		if !slices.Contains(f.IDs, id) {
			f.IDs = append(f.IDs, id)
		}
	}
	return nil
}

// read returns the letters. If one of the IDs does not exist, the command does nothing: it may be a
// typing error.
func (c *letterChoice) read(ctx context.Context, db *store.DB) ([]store.DeadLetter, error) {
	letters, err := db.DeadLetters(ctx, c.filter)
	for _, id := range c.filter.IDs {
		if err == nil && !slices.ContainsFunc(letters, func(l store.DeadLetter) bool { return l.ID == id }) {
			err = advise(fmt.Errorf("dead letter %d does not exist: nothing was done", id), "to list all dead letters: criticizer deadletter list --state all")
		}
	}
	return letters, err
}

// bulk returns what the command does about the letters. refuses returns a settledError if a letter is
// left out.
func (c *letterChoice) bulk(done string, refuses func(store.DeadLetter) error, act func(store.DeadLetter) (run string, err error)) bulk[store.DeadLetter] {
	return bulk[store.DeadLetter]{done: done, named: c.named(), dryRun: c.dryRun, table: deadLetterTable, act: act, as: func(l store.DeadLetter) itemResult {
		return itemResult{ID: l.ID, Changelist: l.Changelist, Version: l.Version}
	}, possible: func(l store.DeadLetter) (bool, error) {
		err := refuses(l)
		if _, left := errors.AsType[settledError](err); left {
			return false, nil
		}
		return err == nil, err
	}}
}
