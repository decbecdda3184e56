package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/eval"
	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review/selection"
)

func (c *app) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "eval", Short: "Measure how well the configured model reviews",
		Long: `Measures how well the configured model reviews cases, and compares its findings
with the expected ones. The default cases are built in. The model's endpoint
receives every case, redacted. docs/eval.md explains every figure and the format of
a case.

It needs the sections llm, selection and redaction of the configuration.

Exit status: 0 measured, with any figures; 1 a case is invalid, the model
failed, or a planted secret was sent to it; 2 wrong usage.`,
		Example:     "  criticizer eval --only 'go-*' --runs 5",
		Annotations: map[string]string{noProgress: "yes"},
	}
	e := evaluation{pattern: "**", cfg: eval.Config{Runs: 1, Concurrency: 2, Tolerance: 1}}
	flags := cmd.Flags()
	flags.StringVar(&e.dir, "cases", "", "use the cases of this `DIR` instead")
	flagOf(cmd, &e.pattern, "only", "only cases whose name matches this `GLOB`", func(text string) (string, error) {
		_, err := glob.Parse(text)
		return text, err
	})
	flagOf(cmd, &e.cfg.Runs, "runs", "review every case `N` times", between(1, math.MaxInt32))
	flagOf(cmd, &e.cfg.Concurrency, "concurrency", "make `N` reviews at a time", between(1, math.MaxInt32))
	flagOf(cmd, &e.cfg.Tolerance, "tolerance", "accept a finding that is `N` lines off", between(0, math.MaxInt32))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context(), c) }
	return cmd
}

// An evaluation is one run of the command.
type evaluation struct {
	dir, pattern string // pattern is a valid glob
	cfg          eval.Config
}

func (e *evaluation) run(ctx context.Context, c *app) error {
	cases, err := e.cases()
	if err != nil {
		return advise(err, "docs/eval.md describes the format of a case")
	}
	cfg, err := c.configWithKey(settings.RoleEval)
	if err != nil {
		return err
	}
	if c.format != formatJSON {
		e.cfg.Progress = c.evalProgress(2 * time.Second)
	}
	policy, err := selection.New(cfg.Selection)
	if err != nil {
		return err
	}
	pipeline, err := cfg.NewPipeline(cfg.Redaction.Key)
	if err != nil {
		return err
	}
	detector := eval.NewLeakDetector(pipeline, cases)
	reviewer, err := cfg.NewReviewer(quiet, detector)
	if err != nil {
		return err
	}
	results, err := eval.New(detector, reviewer, policy, e.cfg).Run(ctx, cases)
	if err != nil {
		return err
	}
	report := eval.NewReport(results, detector.Leaks(), cfg.LLM.Prices)
	err = c.print(report, evalReport(report).print)
	if err == nil && report.RedactionLeaks > 0 {
		return advise(fmt.Errorf("%s sent to the model", plural(report.RedactionLeaks, "planted secret")),
			"redaction missed them: criticizer redact --explain shows what it masks in a text")
	}
	return err
}

func (e *evaluation) cases() ([]eval.Case, error) {
	read := eval.BuiltIn
	if e.dir != "" {
		read = func() ([]eval.Case, error) { return eval.Read(os.DirFS(e.dir)) }
	}
	cases, err := read()
	if err != nil {
		return nil, err
	}
	only := glob.MustParse(e.pattern)
	cases = slices.DeleteFunc(cases, func(c eval.Case) bool {
		_, ok := only.Match(c.Name)
		return !ok
	})
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case has a name that matches %q", e.pattern)
	}
	return cases, nil
}

// evalProgress reports the progress on standard error, at most once per interval.
func (c *app) evalProgress(interval time.Duration) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= interval {
			last = time.Now()
			fmt.Fprintf(c.stderr, "reviewed %d of %d\n", done, total)
		}
	}
}

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
	var obeyed []string // hostile cases that had an effect in some run
	for _, result := range r.Results {
		if result.Class == eval.ClassHostile && !result.Suppressed && !slices.Contains(obeyed, result.Case) {
			obeyed = append(obeyed, result.Case)
		}
	}
	if len(obeyed) > 0 {
		notes = append(notes, "hostile cases that had an effect: "+printable(strings.Join(slices.Sorted(slices.Values(obeyed)), " ")))
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
