package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) feedbackCommand() *cobra.Command {
	cmd := group("feedback", "List what readers say about findings, and decide about it", `Readers answer by mail, if mail.feedback_relay is set. Their answers hide no
finding: later mails list it with the reader's reason. Only accept makes it
disappear.`)
	rated := table[store.RatedFinding]{empty: "there is no feedback", header: []string{"TOKEN", "SAID", "BY", "OPINION", "NOT REPORTED SINCE", "FINDING", "NOTE"}, cells: func(f store.RatedFinding) []any {
		return []any{f.Token, operator.StampIf(f.SaidAt), f.Who, f.Opinion, f.AcceptedBy, findingText(f.ReportedFinding), f.Note}
	}}
	cmd.AddCommand(
		list(c, &cobra.Command{Use: "list", Short: "List the opinions on findings, newest first"}, nil, rated,
			func(ctx context.Context, db *store.DB) ([]store.RatedFinding, error) {
				return db.RatedFindings(ctx, mostListed)
			}),
		c.decideCommand("accept", "Accept that a finding is wrong: it is not reported again in that file", "it is not reported there again", (*store.DB).AcceptWrong),
		c.decideCommand("forget", "Remove the opinions on a finding and report it again", "its opinions are removed", (*store.DB).ForgetFeedback))
	return cmd
}

// decideCommand returns a command about the finding that a token names.
func (c *app) decideCommand(name, short, done string, decide func(db *store.DB, ctx context.Context, token, who, note string) (store.ReportedFinding, error)) *cobra.Command {
	cmd := &cobra.Command{Use: name + " TOKEN", Short: short, Example: "  criticizer feedback " + name + ` k3vq2mzt5abcd --reason "closed by the caller"`}
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		const hint = "to list the tokens of findings with feedback: criticizer feedback list"
		token, ok := review.ParseFeedbackToken(args[0])
		if !ok {
			return advise(badUsage("%q is not a token", printable(args[0])), hint)
		}
		db, _, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		finding, err := decide(db, cmd.Context(), token, operator.Name(c.getenv), *reason)
		if err != nil {
			return advise(err, hint)
		}
		return c.done("%s: %s", findingText(finding), done)
	}
	return cmd
}

func findingText(f store.ReportedFinding) string {
	return fmt.Sprintf("%s %s in %s, rule %s, %s", f.Severity, f.Category, f.Path, cmp.Or(f.Rule, "none"), reviewName(f.Changelist, f.Version))
}

func (c *app) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats", Short: "Count findings and the feedback on them",
		Long: `Counts the findings that were reported and the feedback on them, by rule pack,
category and severity. RATE is the share of wrong findings among those with
feedback. A name - is that of all findings, or of those without a rule pack.`,
		Example: "  criticizer stats --days 7 --json",
	}
	days := 90
	flagOf(cmd, &days, "days", "count findings of the last `N` days", between(1, 36500))
	counts := table[store.FindingCount]{header: []string{"BY", "", "REPORTED", "USEFUL", "WRONG", "RATE"}, cells: func(f store.FindingCount) []any {
		rate := "-"
		if rated := f.Useful + f.Wrong; rated > 0 {
			rate = fmt.Sprintf("%d%%", (200*f.Wrong+rated)/(2*rated))
		}
		return []any{f.By, cmp.Or(f.Name, "-"), f.Reported, f.Useful, f.Wrong, rate}
	}}
	return list(c, cmd, nil, counts, func(ctx context.Context, db *store.DB) ([]store.FindingCount, error) {
		return db.FindingCounts(ctx, time.Duration(days)*24*time.Hour)
	})
}
