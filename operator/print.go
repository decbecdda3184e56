package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/criticizer/criticizer/store"
)

// table prints rows as aligned columns, each row indented.
func table(w io.Writer, indent string, rows [][]string) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		last := len(row) - 1
		for last > 0 && row[last] == "" { // no blanks at the end of a line
			last--
		}
		fmt.Fprintln(out, indent+strings.Join(row[:last+1], "\t"))
	}
	_ = out.Flush()
}

// letterTable prints one line per dead letter.
func letterTable(w io.Writer, indent string, letters []store.DeadLetter) {
	rows := [][]string{{"ID", "CHANGELIST", "STAGE", "CLASS", "STATE", "AGE", "TRIES", "MARKS"}}
	for _, l := range letters {
		rows = append(rows, []string{
			fmt.Sprint(l.ID), fmt.Sprintf("%d v%d", l.Changelist, l.Version), l.Stage, string(l.ErrorClass), string(l.State),
			age(time.Since(l.RecordedAt)), fmt.Sprint(l.Attempts), marks(l),
		})
	}
	table(w, indent, rows)
}

// marks are what about a letter wants attention.
func marks(l store.DeadLetter) string {
	var words []string
	for _, m := range []struct {
		set  bool
		word string
	}{{l.Escalated, "escalated"}, {l.Unexplained, "unexplained"}, {l.Interrupted, "interrupted"}} {
		if m.set {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, " ")
}

// stateOf is a letter's state with its marks.
func stateOf(l store.DeadLetter) string {
	if m := marks(l); m != "" {
		return string(l.State) + ", " + m
	}
	return string(l.State)
}

// age is a duration in at most two units.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// reviewOf names the review of a letter.
func reviewOf(l store.DeadLetter) string {
	return fmt.Sprintf("changelist %d v%d", l.Changelist, l.Version)
}

func somebody(who string) string { return cmp.Or(who, "somebody unnamed") }

// byWhom says who did something and why, if they said.
func byWhom(who, why string) string {
	if why == "" {
		return "by " + somebody(who) + ", no reason given"
	}
	return "by " + somebody(who) + ": " + printable(why)
}

// contextOf prints a dead letter's context in a fixed order.
func contextOf(values map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if values[key] != "" {
			words = append(words, key+"="+values[key])
		}
	}
	return printable(strings.Join(words, " "))
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n"+by)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
