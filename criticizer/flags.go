package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// flagOf adds a flag that parse checks; the value that to has is its default.
func flagOf[T any](cmd *cobra.Command, to *T, name, usage string, parse func(string) (T, error)) {
	if preset := fmt.Sprint(*to); !slices.Contains([]string{"", "0", "0s"}, preset) {
		usage += " (default " + preset + ")"
	}
	cmd.Flags().Func(name, usage, func(text string) (err error) {
		*to, err = parse(text)
		return err
	})
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

func errorClasses() []failure.Class {
	var all []failure.Class
	for _, d := range failure.Descriptions() {
		all = append(all, d.Class)
	}
	return all
}
