package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// A bulk is what a command does about dead letters or deliveries, one after another. They are
// named by ID or chosen by flags.
type bulk[T any] struct {
	of      string   // dead letter or delivery
	filters []string // the flags that choose
	find    func(context.Context, *store.DB, int64) (T, error)
	all     func(context.Context, *store.DB) ([]T, error) // that the flags choose
	as      func(T) itemResult
	table   table[T] // of a dry run

	ids    []int64
	dryRun bool
}

// addDryRun adds the flag.
func (b *bulk[T]) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "print what would be done, and exit")
}

// parse reads the operands.
func (b *bulk[T]) parse(cmd *cobra.Command, args []string) error {
	filters := "--" + strings.Join(b.filters, ", --")
	switch filtered := slices.ContainsFunc(b.filters, cmd.Flags().Changed); {
	case filtered && len(args) > 0:
		return badUsage("%s wants IDs or filters, not both: delete the IDs, or the filters of %s", cmd.Name(), filters)
	case !filtered && len(args) == 0:
		return badUsage("%s has neither IDs nor filters: name each %s by its ID, or choose by %s", cmd.Name(), b.of, filters)
	}
	for _, arg := range args {
		id, err := parseID(b.of, arg)
		if err != nil {
			return err
		}
		if !slices.Contains(b.ids, id) {
			b.ids = append(b.ids, id)
		}
	}
	return nil
}

func (b *bulk[T]) named() bool { return len(b.ids) > 0 }

// read returns the items. If one of the IDs does not exist, the command does nothing: it may be a
// typing error.
func (b *bulk[T]) read(ctx context.Context, db *store.DB) (items []T, err error) {
	if !b.named() {
		return b.all(ctx, db)
	}
	for _, id := range b.ids {
		item, err := b.find(ctx, db, id)
		if err != nil {
			return nil, fmt.Errorf("%w: nothing was done", err)
		}
		items = append(items, item)
	}
	return items, nil
}

// run calls act for each item and reports what is done, such as replayed. With --dry-run it prints
// the items that refuses leaves. An item that a flag chose and about which nothing is to be done is
// skipped; if it was named, it has failed. The exit status is 1 if one has failed.
func (b *bulk[T]) run(c *app, items []T, done string, refuses func(T) error, act func(T) (run string, err error)) error {
	if b.dryRun {
		return b.preview(c, items, done, refuses)
	}
	results, counts := []itemResult{}, map[string]int{}
	for _, item := range items {
		run, err := act(item)
		if err != nil && b.named() && len(items) == 1 {
			return err
		}
		result := b.as(item)
		result.Result, result.RunID = done, run
		_, settled := errors.AsType[settledError](err)
		switch {
		case err == nil:
		case !b.named() && (settled || failure.ClassOf(err) == failure.WriteConflict):
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
	if !b.named() || len(results) > 1 {
		c.note("%s: %d, skipped: %d, failed: %d", done, counts[done], counts["skipped"], counts["failed"])
	}
	if err == nil && counts["failed"] > 0 {
		return operator.ErrReported
	}
	return err
}

func (b *bulk[T]) preview(c *app, items []T, done string, refuses func(T) error) error {
	would := []T{}
	for _, item := range items {
		err := refuses(item)
		if err == nil {
			would = append(would, item)
		} else if _, settled := errors.AsType[settledError](err); !settled {
			return err
		}
	}
	err := printList(c, would, b.table)
	c.note("would be %s: %d, skipped: %d; nothing was done: --dry-run", done, len(would), len(items)-len(would))
	return err
}

// chooseLetters adds the flags that choose dead letters.
func chooseLetters(cmd *cobra.Command) *bulk[store.DeadLetter] {
	filter := store.DeadLetterFilter{States: unresolved}
	classAndStage(cmd, &filter)
	flagOf(cmd, &filter.Changelist, "changelist", "only those of this changelist `N`", review.ParseChangelist)
	flagOf(cmd, &filter.OlderThan, "older-than", "only those recorded more than this `DURATION` ago", positive)
	letters := &bulk[store.DeadLetter]{
		of: "dead letter", filters: []string{"class", "stage", "changelist", "older-than"}, find: findDeadLetter, table: deadLetterTable,
		all: func(ctx context.Context, db *store.DB) ([]store.DeadLetter, error) {
			return db.DeadLetters(ctx, filter)
		},
		as: func(l store.DeadLetter) itemResult {
			return itemResult{ID: l.ID, Changelist: l.Changelist, Version: l.Version}
		},
	}
	letters.addDryRun(cmd)
	return letters
}
