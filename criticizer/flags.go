package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// A value is a flag whose text is parsed and checked by a function.
type value[T any] struct {
	to    *T
	parse func(string) (T, error)
	text  string
}

func newValue[T any](to *T, parse func(string) (T, error)) *value[T] {
	v := &value[T]{to: to, parse: parse}
	if text := fmt.Sprint(*to); text != "0" && text != "0s" {
		v.text = text
	}
	return v
}

// Set implements [pflag.Value].
func (v *value[T]) Set(text string) (err error) {
	*v.to, err = v.parse(text)
	v.text = text
	return err
}

// String implements [pflag.Value].
func (v *value[T]) String() string { return v.text }

// Type implements [pflag.Value].
func (v *value[T]) Type() string { return "checked" }

// flagOf adds a flag that parse checks.
func flagOf[T any](cmd *cobra.Command, to *T, name, usage string, parse func(string) (T, error)) {
	cmd.Flags().Var(newValue(to, parse), name, usage)
}

// wordFlag adds a flag whose value is one of a few words, which complete it.
func wordFlag[T ~string](cmd *cobra.Command, to *T, name, usage string, words ...T) {
	flagOf(cmd, to, name, usage, oneOf(words...))
	must(cmd.RegisterFlagCompletionFunc(name, fixed(words...)))
}

func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if !slices.Contains(words, T(text)) {
			return "", fmt.Errorf("want %s", alternatives(words...))
		}
		return T(text), nil
	}
}

func texts[T ~string](words []T) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// alternatives joins words as in "a, b or c".
func alternatives[T ~string](words ...T) string {
	list := texts(words)
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	return strings.Join(list, "")
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a duration above zero with its unit, such as 30s, 5m or 24h")
	}
	return d, nil
}

// mostListed is the largest --limit.
const mostListed = 10_000

func between(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return n, nil
	}
}

// parseID reads the ID of a dead letter or a delivery.
func parseID(of, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badUsage("%q is not the ID of a %s: want a number, as in the first column of criticizer %s list", text, of, strings.ReplaceAll(of, " ", ""))
	}
	return id, nil
}

func parseChangelist(text string) (review.Changelist, error) {
	cl, err := review.ParseChangelist(text)
	if err != nil {
		return 0, badUsage("%w", err)
	}
	return cl, nil
}

// must panics on an error that only a mistake in the command tree can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fixed completes one of the words.
func fixed[T ~string](words ...T) cobra.CompletionFunc {
	return cobra.FixedCompletions(texts(words), cobra.ShellCompDirectiveNoFileComp)
}

// first completes the first operand only.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// completionTimeout bounds the queries of a completion: a person waits for it.
const completionTimeout = 2 * time.Second

// fromDatabase completes what list reads. It completes nothing if the database
// does not answer.
func (c *console) fromDatabase(list func(context.Context, *store.DB) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		db, _, err := c.database(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer db.Close()
		found, err := list(ctx, db)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// letterIDs completes the IDs of unresolved dead letters.
func (c *console) letterIDs() cobra.CompletionFunc {
	return c.fromDatabase(func(ctx context.Context, db *store.DB) (ids []string, err error) {
		letters, err := db.DeadLetters(ctx, store.LetterFilter{States: unresolved})
		for _, l := range letters {
			ids = append(ids, cobra.CompletionWithDesc(fmt.Sprint(l.ID), fmt.Sprintf("%s, %s in stage %s", reviewName(l.Changelist, l.Version), l.ErrorClass, l.Stage)))
		}
		return ids, err
	})
}

// changelists completes the changelists of the newest reviews.
func (c *console) changelists() cobra.CompletionFunc {
	return first(c.fromDatabase(func(ctx context.Context, db *store.DB) (numbers []string, err error) {
		found, err := db.RecentReviews(ctx, store.ReviewFilter{Max: 20})
		for _, r := range found {
			numbers = append(numbers, cobra.CompletionWithDesc(r.Changelist.String(), string(r.State)))
		}
		return numbers, err
	}))
}

func errorClasses() []failure.Class {
	var all []failure.Class
	for _, d := range failure.Descriptions() {
		all = append(all, d.Class)
	}
	return all
}
