package main

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review/selection"
)

func (c *app) evalCommand() *cobra.Command {
	cmd := c.evaluationCommand("eval", "Measure how well the configured model reviews", `Measures how well the configured model reviews cases, and compares its findings
with the expected ones. The default cases are built in. The model's endpoint
receives every case, redacted. criticizer help eval.md explains every figure and
the format of a case.

It needs the sections llm, selection and redaction of the configuration.

Exit status: 0 measured, with any figures; 1 a case is invalid, the model
failed, or a planted secret was sent to it; 2 wrong usage.`, "  criticizer eval --only 'go-*' --runs 5", func(ctx context.Context, e *evaluation, _ []string) error { return e.run(ctx, c) })
	cmd.AddCommand(
		c.evaluationCommand("record DIR", "Measure, and keep the model's answers", `Measures like criticizer eval, and writes the model's answers and the report into a
directory, for criticizer eval replay and compare. They quote the cases, as
redacted.`,
			"  criticizer eval record --cases ours --runs 3 before", func(ctx context.Context, e *evaluation, args []string) error {
				e.recordTo = args[0]
				return e.run(ctx, c)
			}),
		c.evaluationCommand("replay DIR", "Measure with the answers of a recording, without a model", `Measures like criticizer eval, with the answers that criticizer eval record
wrote: no model is asked. It needs the same cases, prompts and settings, and fails
at the first question that the recording does not answer. Another --tolerance and
other expectations score the same answers again.`, "  criticizer eval replay before --tolerance 3", func(ctx context.Context, e *evaluation, args []string) (err error) {
			const again = "a recording answers the same cases, settings, prompts and model; to make one: criticizer eval record DIR"
			if e.cfg.Recording, err = eval.ReadRecording(args[0]); err != nil {
				return advise(err, again)
			}
			if err = e.run(ctx, c); failure.ClassOf(err) == failure.NotFound {
				return advise(err, again)
			}
			return err
		}),
		c.evalCompareCommand(), c.evalImportCommand(),
	)
	return cmd
}

// evaluationCommand returns a command that reviews cases.
func (c *app) evaluationCommand(use, short, long, example string, act func(context.Context, *evaluation, []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Annotations: map[string]string{noProgress: "yes"}}
	e := evaluation{pattern: "**", cfg: eval.Config{Runs: 1, Concurrency: 2, Tolerance: 1}}
	flags := cmd.Flags()
	flags.StringVar(&e.dir, "cases", "", "use the cases of this `DIR` instead")
	flags.StringVar(&e.repositories, "repositories", "", "git repositories of the cases are below this `DIR` (default: that of --cases)")
	flagOf(cmd, &e.pattern, "only", "only cases whose name matches this `GLOB`", func(text string) (string, error) {
		_, err := glob.Parse(text)
		return text, err
	})
	flagOf(cmd, &e.cfg.Runs, "runs", "review every case `N` times", between(1, math.MaxInt32))
	flagOf(cmd, &e.cfg.Concurrency, "concurrency", "make `N` reviews at a time", between(1, math.MaxInt32))
	flagOf(cmd, &e.cfg.Tolerance, "tolerance", "accept a finding that is `N` lines off", between(0, math.MaxInt32))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return act(cmd.Context(), &e, args) }
	return cmd
}

// An evaluation is one run of the command.
type evaluation struct {
	dir, repositories, pattern string // pattern is a valid glob
	recordTo                   string // a directory; empty: nothing is recorded
	cfg                        eval.Config
}

func (e *evaluation) run(ctx context.Context, c *app) error {
	cases, err := e.cases(ctx)
	if err != nil {
		return advise(err, "for the format of a case: criticizer help eval.md")
	}
	cfg, err := c.configWithKey(settings.RoleEval)
	if err != nil {
		return err
	}
	switch {
	case e.recordTo != "":
		key := rand.Text() // that of the configuration does not belong into a file
		cfg.Redaction.Key, e.cfg.Recording = secret.New(key), eval.NewRecording(key)
	case e.cfg.Recording != nil:
		cfg.Redaction.Key = secret.New(e.cfg.Recording.RedactionKey)
	}
	if !c.json {
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
	report := eval.NewReport(results, detector.Leaks(), cfg.LLM.TokenPrices())
	if e.recordTo != "" {
		if err := e.cfg.Recording.Write(e.recordTo, report); err != nil {
			return err
		}
	}
	err = c.print(report, evalReport(report).print)
	if err == nil && report.RedactionLeaks > 0 {
		return advise(fmt.Errorf("%s sent to the model", plural(report.RedactionLeaks, "planted secret")),
			"redaction missed them; to see what it masks in a text: criticizer redact --explain < FILE")
	}
	return err
}

func (e *evaluation) cases(ctx context.Context) ([]eval.Case, error) {
	read := eval.BuiltIn
	if e.dir != "" {
		read = func() ([]eval.Case, error) {
			return eval.Read(ctx, os.DirFS(e.dir), cmp.Or(e.repositories, e.dir))
		}
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

func (c *app) evalCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compare A B", Short: "Report whether the second of two reports is better",
		Long: `Compares two reports about the same cases: directories of criticizer eval record,
or files with the output of criticizer eval --json. The second is better or worse
if the 95 % interval of the difference of F1, by a paired bootstrap over the
cases, does not have 0. Otherwise the verdict is open, and the command says how
many such cases distinguish 5 points.`,
		Example:     "  criticizer eval compare before after",
		Annotations: map[string]string{noProgress: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			var reports [2]eval.Report
			for i := range reports {
				var err error
				if reports[i], err = eval.ReadReport(args[i]); err != nil {
					return advise(err, "to make a report: criticizer eval record DIR")
				}
			}
			compared, err := eval.Compare(reports[0], reports[1])
			if err != nil {
				return advise(err, "give both the same --cases, --only and --runs; to make a report: criticizer eval record DIR")
			}
			return c.print(compared, func(w io.Writer) {
				rows := [][]string{{"REPORT", "MODEL", "PRECISION", "RECALL", "F1", "FP/CLEAN", "TOKENS", "COST"}}
				for i, r := range reports {
					cost := "-"
					if r.Cost != nil {
						cost = fmt.Sprintf("%.4f %s", r.Cost.Amount, r.Cost.Currency)
					}
					rows = append(rows, operator.Row(printable(args[i]), printable(r.Model), share(r.Precision), share(r.Recall), share(r.F1), share(r.FalsePositivesPerCleanChange), r.Tokens, cost))
				}
				operator.WriteTable(w, "", rows)
				fmt.Fprintf(w, "\nF1 differs by %+.3f, 95 %% between %+.3f and %+.3f\n", compared.F1, compared.F1Interval.Low, compared.F1Interval.High)
				fmt.Fprintf(w, "met by the first only: %d, by the second only: %d (McNemar p = %.3f)\n", compared.OnlyFirst, compared.OnlySecond, compared.McNemar)
				fmt.Fprintf(w, "verdict: %s; 5 points need about %s of this kind, of which there are %d\n", compared.Verdict, plural(compared.CasesNeeded, "case"), compared.Cases)
			})
		},
	}
}

func (c *app) evalImportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE DIR", Short: "Write cases of AACR-Bench",
		Long: `Writes a case for each pull request of positive_samples.json of AACR-Bench
(github.com/alibaba/aacr-bench). To review them, clone the repositories that the
cases name, as OWNER/NAME below one directory, and name it with --repositories.`,
		Example: `  criticizer eval import positive_samples.json aacr
  criticizer eval record --cases aacr --repositories clones before`,
		Annotations: map[string]string{noProgress: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := eval.ImportAACR(args[0], args[1])
			if err != nil {
				return err
			}
			return c.print(map[string]int{"cases": n}, func(w io.Writer) { fmt.Fprintf(w, "%s written to %s\n", plural(n, "case"), printable(args[1])) })
		},
	}
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
	operator.WriteTable(w, "", append(rows, scoreRow("all", "", r.Scores)))
	if notes := r.notes(); len(notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(notes, "\n"))
	}
}

func (r evalReport) notes() []string {
	var notes []string
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
	return operator.Row(by, name, s.Cases, share(s.Precision), share(s.Recall), share(s.F1), share(s.AnchorRate),
		share(s.FalsePositivesPerCleanChange), share(s.InjectionSuppressed), s.ParseFailures, s.RedactionLeaks, s.Tokens)
}

// share formats a figure that may be unknown.
func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}
