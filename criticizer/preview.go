package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

func (c *app) previewCommand() *cobra.Command {
	var prompts, ask bool
	var commits string
	cmd := &cobra.Command{
		Use: "preview [CHANGELIST]", Short: "Show how a changelist would be reviewed, or review it on the spot",
		Long: `Prints how a submitted changelist would be reviewed: for every file whether it
is reviewed, and if not, why; the model calls with their tokens and rules; the
number of masked secrets; and the recipients. Nothing is stored or sent.

With --ask the model is called, and the mail is printed as text. With --git, the
change is read from two commits of the git repository in the working directory.
With --show-context it also prints, masked, what each call would send.

It needs the sections p4 (not with --git), selection and redaction of the
configuration, with --ask also llm, but neither Temporal nor the database.`,
		Example: `  criticizer preview --git main..HEAD --ask
  criticizer preview 4711 --json | jq '.files[].verdict'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (commits == "") == (len(args) == 0) {
				return badUsage("name a changelist, or commits with --git")
			}
			var roles []settings.Role
			if commits == "" {
				roles = append(roles, settings.RolePreview)
			}
			if ask {
				roles = append(roles, settings.RoleEval)
			}
			cfg, err := c.configWithKey(roles...)
			if err != nil {
				return err
			}
			if !ask {
				cfg.LLM.Model = cmp.Or(cfg.LLM.Model, "no model is called")
				if !cfg.LLM.APIKey.IsSet() {
					cfg.LLM.APIKey = secret.New("no model is called")
				}
			}
			var change review.Change
			if commits != "" {
				change, err = gitChange(cmd.Context(), cfg, commits)
			} else {
				change, err = readChange(cmd.Context(), cfg, args[0])
			}
			if err != nil {
				return err
			}
			p, err := newPreview(cmd.Context(), cfg, change, prompts)
			if err != nil {
				return err
			}
			if !ask || change.SkippedBy != "" {
				return c.print(p, p.print)
			}
			report, err := p.ask(cmd.Context())
			if err != nil {
				return err
			}
			text, _, err := mail.Bodies(report, mail.Config{})
			if err != nil {
				return err
			}
			return c.print(report, func(w io.Writer) { _, _ = io.WriteString(w, text) })
		},
	}
	cmd.Flags().BoolVar(&prompts, "show-context", false, "print what each call would send")
	cmd.Flags().BoolVar(&ask, "ask", false, "have the model review it and print the mail")
	cmd.Flags().StringVar(&commits, "git", "", "review what changed between two `COMMITS`, such as main..HEAD")
	cmd.MarkFlagsMutuallyExclusive("ask", "show-context")
	return cmd
}

func readChange(ctx context.Context, cfg *settings.Config, number string) (review.Change, error) {
	cl, err := parseChangelist(number)
	if err != nil {
		return review.Change{}, err
	}
	fetcher, err := cfg.NewChanges(quiet, nil)
	if err != nil {
		return review.Change{}, err
	}
	change, err := fetcher.Read(ctx, cl, review.ReadOptions{})
	if err != nil {
		return change, fmt.Errorf("fetch changelist %d: %w", cl, err)
	}
	return change, nil
}

type preview struct {
	Changelist review.Changelist `json:"changelist"`
	Author     string            `json:"author"`
	// Outcome is what the review would be without findings. Reason is why it would not be
	// clean, or empty.
	Outcome review.Outcome `json:"outcome"`
	Reason  string         `json:"reason,omitempty"`
	llm.Preview
	Files      []previewedFile            `json:"files"` // replaces that of llm.Preview
	Redactions []review.Redaction         `json:"redactions"`
	Recipients []review.RecipientDecision `json:"recipients"`

	redacted redaction.Change
	pipeline *redaction.Pipeline
	reviewer *llm.Reviewer
}

// ask has the model review the change, as stage llm does.
func (p *preview) ask(ctx context.Context) (review.Report, error) {
	draft, err := p.reviewer.Review(ctx, p.redacted, review.Options{})
	if err != nil {
		return review.Report{}, err
	}
	if draft.Findings, err = p.pipeline.Findings(draft.Findings); err != nil {
		return review.Report{}, err
	}
	return activities.NewReport(review.Request{Changelist: p.Changelist, Version: 1}, p.redacted, draft), nil
}

type previewedFile struct {
	Verdict string `json:"verdict"` // review, part or skip
	llm.FilePreview
	Pattern string `json:"pattern,omitempty"` // of the selection, if one decided
}

// newPreview takes the change through the steps of a review before the model call.
func newPreview(ctx context.Context, cfg *settings.Config, change review.Change, prompts bool) (*preview, error) {
	pipeline, err := cfg.NewPipeline(cfg.Redaction.Key)
	if err != nil {
		return nil, err
	}
	reviewer, err := cfg.NewReviewer(quiet, pipeline)
	if err != nil {
		return nil, err
	}
	redacted, err := pipeline.Change(change)
	if err != nil {
		return nil, fmt.Errorf("redact the change: %w", err)
	}
	planned, err := reviewer.Preview(ctx, redacted, prompts)
	if err != nil {
		return nil, err
	}
	p := &preview{
		Changelist: change.Number, Author: redacted.User.String(), Redactions: append([]review.Redaction{}, redacted.Redactions...),
		Preview: planned, redacted: redacted, pipeline: pipeline, reviewer: reviewer,
	}
	p.Rules = append([]string{}, p.Rules...) // in JSON a list, even if there are none
	if change.SkippedBy != "" {
		p.Outcome, p.Reason, p.Recipients = review.OutcomeNotReviewed, string(change.SkippedBy), []review.RecipientDecision{}
		return p, nil
	}
	p.Outcome, p.Reason = review.Report{Coverage: planned.Coverage, Gaps: change.Gaps}.Judge()
	p.Recipients = cfg.RecipientPolicy().Decide(activities.KnownRecipients(change), review.OutcomeFindings)
	p.Files, err = previewFiles(cfg, change, planned)
	return p, err
}

func previewFiles(cfg *settings.Config, change review.Change, planned llm.Preview) ([]previewedFile, error) {
	policy, err := selection.New(cfg.Selection)
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

func (p *preview) print(w io.Writer) {
	of := "commits"
	if p.Changelist != 0 {
		of = fmt.Sprintf("changelist %d", p.Changelist)
	}
	fmt.Fprintf(w, "%s by %s: %s in %s, at most %d of %d tokens\n", of, printable(p.Author),
		plural(len(p.Files), "file"), plural(len(p.Chunks), "call"), p.Tokens, p.Budget)
	outcome := string(p.Outcome)
	if p.Reason != "" {
		outcome += ", " + p.Reason
	}
	fmt.Fprintf(w, "outcome without findings: %s\n%s\n\n", outcome, strings.TrimSpace(p.Coverage.Tally().Text()+" "+p.Coverage.Tally().Aside()))
	rows := [][]string{{"VERDICT", "FILE", "TOKENS", "CALLS", "RULES", "WHY"}}
	for _, f := range p.Files {
		why, tokens := string(f.Reason), "-"
		if f.Pattern != "" {
			why += " (" + f.Pattern + ")"
		}
		if f.Tokens > 0 {
			tokens = strconv.Itoa(f.Tokens)
		}
		rows = append(rows, operator.Row(f.Verdict, f.Path, tokens, cmp.Or(strings.Trim(fmt.Sprint(f.Chunks), "[]"), "-"), f.Rules, why))
	}
	operator.WriteTable(w, "", rows)
	if len(p.Chunks) > 0 {
		calls := [][]string{{"CALL", "FILES", "TOKENS", "CONTEXT", "PROMPT"}}
		for i, call := range p.Chunks {
			calls = append(calls, operator.Row(i+1, len(call.Files), call.Tokens, call.ContextTokens, call.PromptTokens))
		}
		fmt.Fprintln(w)
		operator.WriteTable(w, "", calls)
	}
	if len(p.RulesLeftOut) > 0 {
		fmt.Fprintf(w, "rules that do not fit into the prompt: %s\n", strings.Join(p.RulesLeftOut, " "))
	}
	for i, call := range p.Chunks {
		for _, sent := range call.Prompts {
			fmt.Fprintf(w, "\n--- call %d, %s: system message\n%s\n--- call %d, %s: user message\n%s", i+1, sent.Task, printable(sent.System), i+1, sent.Task, printable(sent.User))
		}
	}
	fmt.Fprintln(w)
	for _, r := range p.Redactions {
		fmt.Fprintf(w, "masked: %d %s\n", r.Count, r.Class)
	}
	for _, d := range p.Recipients {
		if who := strings.TrimSpace(printable(d.User + " " + d.Address)); d.Why == "" {
			fmt.Fprintf(w, "notified: %s, %s\n", who, d.Role)
		} else {
			fmt.Fprintf(w, "not notified: %s, %s: %s\n", who, d.Role, d.Why)
		}
	}
}
