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
	rows := [][]string{{"", "CASES", "PRECISION", "RECALL", "F1", "ANCHORED", "FP/CLEAN", "SUPPRESSED", "PARSE FAIL", "LEAKS", "TOKENS"}}
	for _, g := range slices.Concat(r.Languages, r.Classes) {
		rows = append(rows, scoreRow(printable(g.Name), g.Scores))
	}
	rows = append(rows, scoreRow("total", r.Scores))
	table(c.stdout, "", rows)
	fmt.Fprintln(c.stdout)
	for _, name := range slices.Sorted(maps.Keys(r.Intervals)) {
		i := r.Intervals[name]
		fmt.Fprintf(c.stdout, "%s: 95 %% between %.3f and %.3f\n", name, i.Low, i.High)
	}
	for _, class := range slices.Sorted(maps.Keys(r.Failures)) {
		fmt.Fprintf(c.stdout, "without an answer, %s: %d\n", class, r.Failures[class])
	}
	if names := obeyed(r.Results); len(names) > 0 {
		fmt.Fprintf(c.stdout, "hostile cases that had an effect: %s\n", printable(strings.Join(names, " ")))
	}
	if r.Cost != nil {
		fmt.Fprintf(c.stdout, "cost: %.4f %s\n", r.Cost.Amount, r.Cost.Currency)
	}
}

func times(runs int) string {
	if runs == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", runs)
}

func scoreRow(name string, s eval.Scores) []string {
	return []string{
		name, strconv.Itoa(s.Cases), share(s.Precision), share(s.Recall), share(s.F1), share(s.AnchorRate),
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
		if r.Class == "hostile" && !r.Suppressed {
			names = append(names, r.Case)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
