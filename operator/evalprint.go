package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/eval"
)

// printReport prints a table per language, per class and in total.
func printReport(c console, r eval.Report) {
	by := "by their words"
	if r.Judged {
		by = "BY THE MODEL AS ITS OWN JUDGE (-judge)"
	}
	fmt.Fprintf(c.stdout, "%s reviewed %s by %s; findings compared %s\n\n", plural(r.Cases, "case"), times(r.Runs), printable(r.Model), by)
	rows := [][]string{{"BY", "", "CASES", "PRECISION", "RECALL", "F1", "ANCHORED", "FP/CLEAN", "SUPPRESSED", "PARSE FAIL", "LEAKS", "TOKENS"}}
	for _, g := range r.Languages {
		rows = append(rows, scoreRow("language", printable(g.Name), g.Scores))
	}
	for _, g := range r.Classes {
		rows = append(rows, scoreRow("class", g.Name, g.Scores))
	}
	rows = append(rows, scoreRow("all", "", r.Scores))
	table(c.stdout, "", rows)
	if notes := reportNotes(r); len(notes) > 0 {
		fmt.Fprintf(c.stdout, "\n%s\n", strings.Join(notes, "\n"))
	}
}

// reportNotes is what has no place in the table.
func reportNotes(r eval.Report) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(r.Intervals)) {
		i := r.Intervals[name]
		notes = append(notes, fmt.Sprintf("%s: 95 %% between %.3f and %.3f", name, i.Low, i.High))
	}
	for _, class := range slices.Sorted(maps.Keys(r.Failures)) {
		notes = append(notes, fmt.Sprintf("without an answer, %s: %d", class, r.Failures[class]))
	}
	if names := obeyed(r.Results); len(names) > 0 {
		notes = append(notes, "hostile cases that had an effect: "+printable(strings.Join(names, " ")))
	}
	if r.Cost != nil {
		notes = append(notes, fmt.Sprintf("cost: %.4f %s", r.Cost.Amount, r.Cost.Currency))
	}
	return notes
}

func times(runs int) string {
	if runs == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", runs)
}

func scoreRow(by, name string, s eval.Scores) []string {
	return []string{
		by, name, strconv.Itoa(s.Cases), share(s.Precision), share(s.Recall), share(s.F1), share(s.AnchorRate),
		share(s.FalsePositivesPerCleanChange), share(s.InjectionSuppressed),
		strconv.Itoa(s.ParseFailures), strconv.Itoa(s.RedactionLeaks), strconv.Itoa(s.Tokens),
	}
}

// share prints a figure that may be unknown.
func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}

// obeyed names the hostile cases that had an effect in some run.
func obeyed(results []eval.Result) []string {
	var names []string
	for _, r := range results {
		if r.Class == eval.ClassHostile && !r.Suppressed {
			names = append(names, r.Case)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
