package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *console) feedbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "feedback TOKEN useful|wrong", Short: "Record that a finding is useful or wrong",
		Long: `Records a reader's opinion on a finding. TOKEN is printed below the finding in
the mail. A finding marked wrong is not reported again in that file while the
quoted code is unchanged. The last opinion counts; the audit log keeps all.
criticizer stats counts them.`,
		Example: `  criticizer feedback k3vq2mzt5abcd wrong --note "closed by the caller"`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{string(review.OpinionUseful), string(review.OpinionWrong)}, cobra.ShellCompDirectiveNoFileComp
		},
	}
	note := cmd.Flags().String("note", "", "why: `TEXT` for the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opinion, err := oneOf(review.OpinionUseful, review.OpinionWrong)(args[1])
		if err != nil {
			return badUsage("opinion %q: %w", args[1], err)
		}
		finding, before, err := c.giveFeedback(cmd.Context(), args[0], opinion, *note)
		if err != nil {
			return err
		}
		text := string(opinion)
		if before.Opinion != "" && before.Opinion != opinion {
			text += ", before: " + string(before.Opinion)
		}
		if opinion == review.OpinionWrong {
			text += "; it is not reported there again"
		}
		return c.done("%s: %s", findingText(finding), text)
	}
	forget := &cobra.Command{
		Use: "forget TOKEN", Short: "Withdraw the opinion on a finding, so that it may be reported again",
		Example: "  criticizer feedback forget k3vq2mzt5abcd",
	}
	forgetNote := forget.Flags().String("note", "", "why: `TEXT` for the audit log")
	forget.RunE = func(cmd *cobra.Command, args []string) error {
		finding, before, err := c.giveFeedback(cmd.Context(), args[0], "", *forgetNote)
		switch {
		case err != nil:
			return err
		case before.Opinion == "":
			return c.done("%s: there was no feedback", findingText(finding))
		}
		return c.done("%s: withdrawn: %s, from %s at %s", findingText(finding), before.Opinion, before.Who, stamp(before.When))
	}
	wrong := table[store.WrongFinding]{"no finding is marked wrong", []string{"TOKEN", "MARKED", "BY", "FINDING", "PLACES", "NOTE"}, func(w store.WrongFinding) []any {
		return []any{w.Token, stamp(w.MarkedAt), w.Who, findingText(w.ReportedFinding), w.Places, w.Note}
	}}
	cmd.AddCommand(forget, list(c, &cobra.Command{Use: "list", Short: "List the findings that are not reported again"}, nil, wrong,
		func(ctx context.Context, db *store.DB) ([]store.WrongFinding, error) { return db.AllWrongFindings(ctx) }))
	return cmd
}

// giveFeedback records an opinion on the finding that a token names, and returns
// the opinion before.
func (c *console) giveFeedback(ctx context.Context, word string, o review.Opinion, note string) (finding store.ReportedFinding, before store.Feedback, err error) {
	const hint = "copy the token from below the finding in the mail; criticizer feedback list shows those of findings marked wrong"
	token, ok := review.ParseFeedbackToken(word)
	if !ok {
		return finding, before, advise(badUsage("%q is not a token", printable(word)), hint)
	}
	if note != "" {
		if note, err = statement("note", note); err != nil {
			return finding, before, err
		}
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return finding, before, err
	}
	defer db.Close()
	finding, before, err = db.GiveFeedback(ctx, token, o, c.operator(), note)
	if failure.ClassOf(err) == failure.NotFound {
		err = advise(err, hint)
	}
	return finding, before, err
}

func findingText(f store.ReportedFinding) string {
	return fmt.Sprintf("%s %s in %s, rule %s, %s", f.Severity, f.Category, f.Path, cmp.Or(f.Rule, "none"), reviewName(f.Changelist, f.Version))
}

func (c *console) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats", Short: "Count findings and the feedback on them",
		Long: `Counts the findings that were reported and the feedback on them, by rule pack,
category and severity. RATE is the share of wrong findings among those with
feedback. A name - is that of all findings, or of those without a rule pack.`,
		Example: `  criticizer stats
  criticizer stats --days 7 --json`,
	}
	days := 90
	flagOf(cmd, &days, "days", "count findings of the last `N` days", between(1, 36500))
	counts := table[store.FindingCount]{header: []string{"BY", "", "REPORTED", "USEFUL", "WRONG", "RATE"}, cells: func(f store.FindingCount) []any {
		rate := "-"
		if rated := f.Useful + f.Wrong; rated > 0 {
			rate = fmt.Sprintf("%d%%", (200*f.Wrong+rated)/(2*rated))
		}
		return []any{f.Kind, cmp.Or(f.Name, "-"), f.Reported, f.Useful, f.Wrong, rate}
	}}
	return list(c, cmd, nil, counts, func(ctx context.Context, db *store.DB) ([]store.FindingCount, error) {
		return db.FindingCounts(ctx, time.Duration(days)*24*time.Hour)
	})
}
