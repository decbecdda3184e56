package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/eval"
)

// An evalReport prints an [eval.Report].
type evalReport eval.Report

// print writes a row per language, per class and in total, then the notes.
func (r evalReport) print(w io.Writer) {
	times := "once"
	if r.Runs > 1 {
		times = fmt.Sprintf("%d times", r.Runs)
	}
	fmt.Fprintf(w, "%s reviewed %s by %s; findings compared by their words\n\n", plural(r.Cases, "case"), times, printable(r.Model))
	rows := [][]string{{"BY", "", "CASES", "PRECISION", "RECALL", "F1", "ANCHORED", "FP/CLEAN", "SUPPRESSED", "PARSE FAIL", "LEAKS", "TOKENS"}}
	for _, g := range r.Languages {
		rows = append(rows, scoreRow("language", g.Name, g.Scores))
	}
	for _, g := range r.Classes {
		rows = append(rows, scoreRow("class", g.Name, g.Scores))
	}
	writeTable(w, "", append(rows, scoreRow("all", "", r.Scores)))
	if notes := r.notes(); len(notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(notes, "\n"))
	}
}

func (r evalReport) notes() []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(r.Intervals)) {
		i := r.Intervals[name]
		notes = append(notes, fmt.Sprintf("%s: 95 %% between %.3f and %.3f", name, i.Low, i.High))
	}
	for _, class := range slices.Sorted(maps.Keys(r.Failures)) {
		notes = append(notes, fmt.Sprintf("without an answer, %s: %d", class, r.Failures[class]))
	}
	if names := r.obeyed(); len(names) > 0 {
		notes = append(notes, "hostile cases that had an effect: "+printable(strings.Join(names, " ")))
	}
	if r.Cost != nil {
		notes = append(notes, fmt.Sprintf("cost: %.4f %s", r.Cost.Amount, r.Cost.Currency))
	}
	return notes
}

func scoreRow(by, name string, s eval.Scores) []string {
	return row(by, name, s.Cases, share(s.Precision), share(s.Recall), share(s.F1), share(s.AnchorRate),
		share(s.FalsePositivesPerCleanChange), share(s.InjectionSuppressed), s.ParseFailures, s.RedactionLeaks, s.Tokens)
}

// share formats a figure that may be unknown.
func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}

// obeyed names the hostile cases that had an effect in some run.
func (r evalReport) obeyed() []string {
	var names []string
	for _, result := range r.Results {
		if result.Class == eval.ClassHostile && !result.Suppressed {
			names = append(names, result.Case)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
