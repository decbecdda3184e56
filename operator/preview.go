package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

const previewUsage = `usage: criticizer preview [-json] CHANGELIST

Prints how a submitted changelist would be reviewed: for every file whether it
is reviewed and if not, why; the calls it takes, their tokens and rules; how
many secrets are masked; and who is told. The change is fetched, redacted and
laid out as the worker does it. The model is not asked and nothing is stored.

It needs the sections p4, selection and redaction of the configuration, and
nothing of Temporal and the database. Without CRITICIZER_REDACTION_KEY the
placeholders have tags of a key made for this run.

flags:
  -json   print JSON

examples:
  criticizer preview 4711
  criticizer preview -json 4711 | jq '.files[].verdict'

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// A preview is what is printed; its names are wire format.
type preview struct {
	Changelist review.Changelist `json:"changelist"`
	Author     string            `json:"author"`
	// Outcome is that of a review without findings, and Reason says why it is
	// not clean.
	Outcome review.Outcome  `json:"outcome"`
	Reason  string          `json:"reason,omitempty"`
	Files   []previewedFile `json:"files"`
	layout
	Redactions []review.Redaction    `json:"redactions"`
	Recipients []activities.Decision `json:"recipients"`
}

// A layout is a [llm.Preview] but for its files.
type layout struct {
	Chunks       []llm.ChunkPreview `json:"chunks"`
	Tokens       int                `json:"tokens"`
	Budget       int                `json:"budget"`
	Rules        []string           `json:"rules"`
	RulesLeftOut []string           `json:"rules_left_out,omitempty"`
}

type previewedFile struct {
	// Verdict is review, part (some of it is shown) or skip.
	Verdict string `json:"verdict"`
	llm.FilePreview
	// Pattern is the one that decided, if one did.
	Pattern string `json:"pattern,omitempty"`
}

// previewChange implements criticizer preview.
func previewChange(ctx context.Context, args []string, c console) error {
	flags := c.flags("preview", previewUsage)
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return badUsage("preview wants one changelist: got %d arguments", len(rest))
	}
	number, err := review.ParseChangelist(rest[0])
	if err != nil {
		return usageError{err}
	}
	cfg, err := c.previewConfig()
	if err != nil {
		return err
	}
	p, err := newPreview(ctx, cfg, number)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(p)
	}
	p.print(c)
	return nil
}

// previewConfig fills in what the layout does not depend on.
func (c console) previewConfig() (*config.Config, error) {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err == nil {
		err = cfg.Check(config.RolePreview)
	}
	if err != nil {
		return nil, advise(err, "docs/configuration.md describes every field")
	}
	cfg.LLM.Model = cmp.Or(cfg.LLM.Model, "none is asked")
	if !cfg.Redaction.Key.IsSet() {
		cfg.Redaction.Key = secret.New(rand.Text())
	}
	return cfg, nil
}

// newPreview takes the change through the steps of a review up to the model.
func newPreview(ctx context.Context, cfg *config.Config, number review.Changelist) (*preview, error) {
	quiet := slog.New(slog.DiscardHandler)
	fetcher, err := wiring.Changes(quiet, cfg)
	if err != nil {
		return nil, err
	}
	owners, err := wiring.Owners(cfg)
	if err != nil {
		return nil, err
	}
	pipeline, err := wiring.Pipeline(cfg, cfg.Redaction.Key)
	if err != nil {
		return nil, err
	}
	reviewer, err := wiring.Reviewer(quiet, pipeline, cfg)
	if err != nil {
		return nil, err
	}
	change, err := fetcher.Fetch(ctx, number)
	if err != nil {
		return nil, fmt.Errorf("fetch changelist %d: %w", number, err)
	}
	redacted, err := pipeline.Change(change)
	if err != nil {
		return nil, fmt.Errorf("redact changelist %d: %w", number, err)
	}
	planned, err := reviewer.Preview(ctx, redacted)
	if err != nil {
		return nil, err
	}
	p := &preview{
		Changelist: number, Author: redacted.User.String(), Redactions: append([]review.Redaction{}, redacted.Redactions...),
		layout: layout{planned.Chunks, planned.Tokens, planned.Budget, append([]string{}, planned.Rules...), planned.RulesLeftOut},
	}
	if change.SkippedBy != "" {
		p.Outcome, p.Reason, p.Recipients = review.OutcomeNotReviewed, string(change.SkippedBy), []activities.Decision{}
		return p, nil
	}
	p.Outcome, p.Reason = outcomeOf(planned)
	p.Recipients = wiring.Recipients(cfg).Decide(activities.Around(change, owners), review.OutcomeFindings)
	p.Files, err = previewFiles(cfg, change, planned)
	return p, err
}

// outcomeOf is how the review ends if nothing is found.
func outcomeOf(planned llm.Preview) (review.Outcome, string) {
	report := review.Report{FilesTotal: len(planned.Files)}
	for _, f := range planned.Files {
		if f.Reason == "" {
			report.FilesRead++
		} else {
			report.Omissions = append(report.Omissions, review.Omission{Path: f.Path, Reason: f.Reason})
		}
	}
	return report.Judge()
}

func previewFiles(cfg *config.Config, change review.Change, planned llm.Preview) ([]previewedFile, error) {
	policy, err := selection.New(wiring.Selection(cfg))
	if err != nil {
		return nil, err
	}
	files := make([]previewedFile, len(planned.Files))
	for i, f := range planned.Files {
		files[i] = previewedFile{FilePreview: f, Verdict: "review"}
		switch {
		case f.Reason != "" && len(f.Chunks) > 0:
			files[i].Verdict = "part"
		case f.Reason != "":
			files[i].Verdict = "skip"
		}
		if v := policy.ByPath(change.Files[i].DepotPath); v.Reason == f.Reason {
			files[i].Pattern = v.Pattern
		}
	}
	return files, nil
}

func (p *preview) print(c console) {
	fmt.Fprintf(c.stdout, "changelist %d by %s: %s in %s, at most %d of %d tokens\n", p.Changelist, printable(p.Author),
		plural(len(p.Files), "file"), plural(len(p.Chunks), "call"), p.Tokens, p.Budget)
	fmt.Fprintf(c.stdout, "without findings the review would be: %s\n", join(string(p.Outcome), p.Reason))
	rows := [][]string{{"VERDICT", "FILE", "TOKENS", "CALLS", "RULES", "WHY"}}
	for _, f := range p.Files {
		why := string(f.Reason)
		if f.Pattern != "" {
			why += " (" + f.Pattern + ")"
		}
		rows = append(rows, []string{f.Verdict, legible(f.Path), countOf(f.Tokens), spans(f.Chunks), f.Rules, why})
	}
	fmt.Fprintln(c.stdout)
	table(c.stdout, "", rows)
	p.printCalls(c)
	fmt.Fprintln(c.stdout)
	for _, r := range p.Redactions {
		fmt.Fprintf(c.stdout, "masked: %d %s\n", r.Count, r.Class)
	}
	for _, d := range p.Recipients {
		if who := strings.TrimSpace(printable(d.User + " " + d.Address)); d.Why == "" {
			fmt.Fprintf(c.stdout, "told: %s, %s\n", who, d.Role)
		} else {
			fmt.Fprintf(c.stdout, "not told: %s, %s: %s\n", who, d.Role, d.Why)
		}
	}
}

func (p *preview) printCalls(c console) {
	if len(p.Chunks) == 0 {
		return
	}
	rows := [][]string{{"CALL", "FILES", "TOKENS", "PROMPT"}}
	for i, call := range p.Chunks {
		rows = append(rows, []string{strconv.Itoa(i + 1), strconv.Itoa(len(call.Files)), strconv.Itoa(call.Tokens), strconv.Itoa(call.PromptTokens)})
	}
	fmt.Fprintln(c.stdout)
	table(c.stdout, "", rows)
	if len(p.RulesLeftOut) > 0 {
		fmt.Fprintf(c.stdout, "rules without room in the prompt: %s\n", strings.Join(p.RulesLeftOut, " "))
	}
}

func join(what, why string) string {
	if why == "" {
		return what
	}
	return what + ", " + why
}

func countOf(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// spans writes ascending numbers as 1-3,7.
func spans(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		part := strconv.Itoa(numbers[i])
		if end > i {
			part += "-" + strconv.Itoa(numbers[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return cmp.Or(strings.Join(parts, ","), "-")
}
