package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/criticizer/criticizer/eval"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/review/selection"
)

const evalUsage = `usage: criticizer eval [flags]
       criticizer eval import swe-prbench [-limit N] DIR OUT
       criticizer eval import aacr-bench [-limit N] [-clones DIR] DIR OUT

Measures how well the configured model reviews: it has cases reviewed as
changelists are, and compares the findings with what a competent reviewer says.
Without flags these are the cases that come with the command. The model's
endpoint is sent every case, redacted; nothing is stored.

  import  write a public benchmark, as its publisher lays it out below DIR, as
          cases below OUT

It needs the sections llm, selection and redaction of the configuration, and
nothing of Perforce, Temporal and the database. docs/eval.md explains every
figure and the form of a case.

flags:
  -cases DIR       use the cases of a directory instead
  -only GLOB       use the cases whose name matches, such as 'hostile-*' or 'own/**'
  -runs N          review every case N times; tells the spread (default 1)
  -concurrency N   reviews at a time (default 2)
  -tolerance N     lines that a finding may be off (default 1)
  -judge           have the model, too, decide which findings are those expected;
                   the figures are then no longer comparable with those without
  -json            print one JSON object, and nothing on the way there

flags of import:
  -limit N         write N cases at most
  -clones DIR      where clones of the repositories are (default DIR/repos)

examples:
  criticizer eval
  criticizer eval -only 'go-*' -json
  criticizer eval -runs 5 -concurrency 8
  criticizer eval import swe-prbench ~/swe-prbench ~/cases
  criticizer eval -cases ~/cases -judge

Exit status: 0 measured, whatever the figures; 1 a case is wrong, the model
cannot be asked, or a planted secret was sent to it; 2 wrong usage.
`

// An evalRun is what the flags of criticizer eval say.
type evalRun struct {
	dir, only string
	judge     bool
	json      bool
	cfg       eval.Config
}

// evaluate implements criticizer eval.
func evaluate(ctx context.Context, args []string, c console) error {
	if len(args) > 0 && args[0] == "import" {
		return importCases(ctx, args[1:], c)
	}
	flags := c.flags("eval", evalUsage)
	var e evalRun
	flags.StringVar(&e.dir, "cases", "", "")
	flags.StringVar(&e.only, "only", "**", "")
	flags.IntVar(&e.cfg.Runs, "runs", 1, "")
	flags.IntVar(&e.cfg.Concurrency, "concurrency", 2, "")
	flags.IntVar(&e.cfg.Tolerance, "tolerance", 1, "")
	flags.BoolVar(&e.judge, "judge", false, "")
	flags.BoolVar(&e.json, "json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return badUsage("eval wants flags, or import: got %q", rest[0])
	}
	if err := e.check(); err != nil {
		return err
	}
	return e.run(ctx, c)
}

func (e *evalRun) check() error {
	switch {
	case e.cfg.Runs < 1:
		return badUsage("-runs %d: want 1 or more", e.cfg.Runs)
	case e.cfg.Concurrency < 1:
		return badUsage("-concurrency %d: want 1 or more", e.cfg.Concurrency)
	case e.cfg.Tolerance < 0:
		return badUsage("-tolerance %d: want 0 or more", e.cfg.Tolerance)
	}
	_, err := glob.Parse(e.only)
	if err != nil {
		return badUsage("-only: %w", err)
	}
	return nil
}

func (e *evalRun) run(ctx context.Context, c console) error {
	cases, err := e.cases()
	if err != nil {
		return advise(err, "docs/eval.md has the form of a case")
	}
	cfg, err := c.evalConfig()
	if err != nil {
		return err
	}
	if !e.json {
		e.cfg.Progress = c.evalProgress(2 * time.Second)
	}
	report, err := e.measure(ctx, cfg, cases)
	if err != nil {
		return err
	}
	if e.json {
		err = c.printJSON(report)
	} else {
		printReport(c, report)
	}
	if err == nil && report.RedactionLeaks > 0 {
		return advise(fmt.Errorf("%s sent to the model", plural(report.RedactionLeaks, "planted secret")),
			"redaction missed them: criticizer redact -explain shows what it sees of a text")
	}
	return err
}

// cases are those of the flags.
func (e *evalRun) cases() ([]eval.Case, error) {
	read := eval.BuiltIn
	if e.dir != "" {
		read = func() ([]eval.Case, error) { return eval.Read(os.DirFS(e.dir)) }
	}
	cases, err := read()
	if err != nil {
		return nil, err
	}
	only := glob.MustParse(e.only) // it was checked
	cases = slices.DeleteFunc(cases, func(c eval.Case) bool {
		_, ok := only.Match(c.Name)
		return !ok
	})
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case has a name like %q", e.only)
	}
	return cases, nil
}

// evalConfig needs no redaction key: nothing is kept.
func (c console) evalConfig() (*config.Config, error) {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err == nil {
		err = cfg.Check(config.RoleEval)
	}
	if err != nil {
		return nil, advise(err, "docs/configuration.md describes every field")
	}
	if !cfg.Redaction.Key.IsSet() {
		cfg.Redaction.Key = secret.New(rand.Text())
	}
	return cfg, nil
}

// measure takes the cases through the stages of a review.
func (e *evalRun) measure(ctx context.Context, cfg *config.Config, cases []eval.Case) (eval.Report, error) {
	quiet := slog.New(slog.DiscardHandler)
	policy, err := selection.New(wiring.Selection(cfg))
	if err != nil {
		return eval.Report{}, err
	}
	pipeline, err := wiring.Pipeline(cfg, cfg.Redaction.Key)
	if err != nil {
		return eval.Report{}, err
	}
	tap := eval.NewTap(pipeline, cases)
	reviewer, err := wiring.Reviewer(quiet, tap, cfg)
	if err != nil {
		return eval.Report{}, err
	}
	judge, err := newJudge(quiet, tap, cfg)
	if err != nil {
		return eval.Report{}, err
	}
	if e.judge {
		e.cfg.Judge = judge
	}
	results, err := eval.New(tap, reviewer, policy, e.cfg).Run(ctx, cases)
	if err != nil {
		return eval.Report{}, err
	}
	report := eval.NewReport(results, tap.Leaks(), wiring.Prices(cfg))
	report.Judged, report.JudgeTokens = e.judge, int(judge.tokens.Load())
	return report, nil
}

// evalProgress tells on standard error how far a long evaluation is, at most
// once in every.
func (c console) evalProgress(every time.Duration) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= every {
			last = time.Now()
			fmt.Fprintf(c.stderr, "reviewed %d of %d\n", done, total)
		}
	}
}
