package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
	"github.com/criticizer/criticizer/store"
)

// An output is standard output. It keeps the first error, so that no command reports success for
// what could not be written, such as a keyset on a full disk.
type output struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// print writes v as JSON, or else what table writes.
func (c *app) print(v any, table func(io.Writer)) error {
	if c.json {
		return operator.WriteJSON(c.stdout, v)
	}
	table(c.stdout)
	return nil
}

// A table shows items as rows below a header.
type table[T any] struct {
	empty  string // printed in place of a table without rows
	header []string
	cells  func(T) []any // of the row of an item
	wide   *table[T]     // further columns of --output wide, if any
}

// rows returns the header and a row for each item.
func (t table[T]) rows(items []T) [][]string {
	rows := [][]string{t.header}
	for _, item := range items {
		rows = append(rows, operator.Row(t.cells(item)...))
	}
	return rows
}

// printList writes items as JSON or as a table.
func printList[T any](c *app, items []T, t table[T]) error {
	return c.print(items, func(w io.Writer) {
		if len(items) == 0 {
			fmt.Fprintln(w, t.empty)
			return
		}
		rows := t.rows(items)
		if c.wide && t.wide != nil {
			for i, more := range t.wide.rows(items) {
				rows[i] = append(rows[i], more...)
			}
		}
		operator.WriteTable(w, "", rows)
	})
}

// list completes a command that lists what read finds in the database. If limit is not
// nil, it adds the flag --limit.
func list[T any](c *app, cmd *cobra.Command, limit *int, t table[T], read func(context.Context, *store.DB) ([]T, error)) *cobra.Command {
	if limit != nil {
		flagOf(cmd, limit, "limit", "list at most `N`", between(1, mostListed))
	}
	cmd.RunE = c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
		items, err := read(ctx, db)
		if err != nil {
			return err
		}
		if err := printList(c, items, t); err != nil || limit == nil || len(items) < *limit {
			return err
		}
		c.note("the newest %d; --limit shows more", *limit)
		return nil
	})
	return cmd
}

func (c *app) done(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return c.print(map[string]string{"message": message}, func(w io.Writer) { fmt.Fprintln(w, printable(message)) })
}

// note prints a line that JSON lacks.
func (c *app) note(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.stdout, format+"\n", args...)
	}
}

// printable shows invisible characters, so that text from outside cannot control the
// operator's terminal.
func printable(s string) string { return plain.Show(s) }

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n"+by)
}

// versionCell names a version of a review in a table.
func versionCell(cl review.Changelist, v review.Version) string { return fmt.Sprintf("%d v%d", cl, v) }

func reviewName(cl review.Changelist, v review.Version) string {
	return fmt.Sprintf("changelist %d v%d", cl, v)
}

// byWhom names who did something, and the reason if one was given.
func byWhom(who, why string) string {
	return "by " + cmp.Or(who, "an unknown person") + ": " + printable(cmp.Or(why, "no reason given"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
