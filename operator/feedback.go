package main

import (
	"cmp"
	"context"
	"fmt"

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
	note := noteFlag(cmd)
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
	cmd.AddCommand(c.forgetCommand(), c.feedbackListCommand())
	return cmd
}

func noteFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("note", "", "why: `TEXT` for the audit log")
}

func (c *console) forgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "forget TOKEN", Short: "Withdraw the opinion on a finding, so that it may be reported again",
		Example: "  criticizer feedback forget k3vq2mzt5abcd",
	}
	note := noteFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		finding, before, err := c.giveFeedback(cmd.Context(), args[0], "", *note)
		if err != nil {
			return err
		}
		if before.Opinion == "" {
			return c.done("%s: there was no feedback", findingText(finding))
		}
		return c.done("%s: withdrawn: %s, from %s at %s", findingText(finding), before.Opinion, before.Who, stamp(before.When))
	}
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

func (c *console) feedbackListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the findings that are not reported again"}
	wrong := table[store.WrongFinding]{"no finding is marked wrong", []string{"TOKEN", "MARKED", "BY", "FINDING", "PLACES", "NOTE"}, func(w store.WrongFinding) []any {
		return []any{w.Token, stamp(w.MarkedAt), w.Who, findingText(w.ReportedFinding), w.Places, w.Note}
	}}
	return list(c, cmd, nil, wrong, func(ctx context.Context, db *store.DB) ([]store.WrongFinding, error) { return db.AllWrongFindings(ctx) })
}

func findingText(f store.ReportedFinding) string {
	return fmt.Sprintf("%s %s in %s, rule %s, %s", f.Severity, f.Category, f.Path, cmp.Or(f.Rule, "none"), reviewName(f.Changelist, f.Version))
}
