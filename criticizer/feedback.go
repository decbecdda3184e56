package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
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

func (c *console) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats", Short: "Count findings and the feedback on them",
		Long: `Counts the findings that were reported and the feedback on them, by rule pack,
category and severity. RATE is the share of wrong findings among those with
feedback.`,
		Example: `  criticizer stats
  criticizer stats --days 7 --json`,
	}
	days := 90
	flagOf(cmd, &days, "days", "count findings of the last `N` days", between(1, 36500))
	cmd.RunE = c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
		counts, err := db.FindingCounts(ctx, time.Duration(days)*24*time.Hour)
		if err != nil {
			return err
		}
		r := rate(days, counts)
		return c.print(r, r.print)
	})
	return cmd
}

// A rating counts the findings of one kind and the feedback on them.
type rating struct {
	Name      string   `json:"name"`
	Reported  int      `json:"reported"`
	Useful    int      `json:"useful"`
	Wrong     int      `json:"wrong"`
	WrongRate *float64 `json:"wrong_rate"` // nil without feedback
}

type ratings struct {
	Days       int      `json:"days"`
	All        rating   `json:"all"`
	ByRule     []rating `json:"by_rule"`
	ByCategory []rating `json:"by_category"`
	BySeverity []rating `json:"by_severity"`
}

func rate(days int, counts []store.FindingCount) ratings {
	severity := func(a, b rating) int {
		return cmp.Compare(slices.Index(review.Severities(), review.Severity(a.Name)), slices.Index(review.Severities(), review.Severity(b.Name)))
	}
	name := func(a, b rating) int { return cmp.Compare(a.Name, b.Name) }
	r := ratings{
		Days: days, All: rating{Name: "all"},
		ByRule:     grouped(counts, func(c store.FindingCount) string { return cmp.Or(c.Rule, "none") }, name),
		ByCategory: grouped(counts, func(c store.FindingCount) string { return string(c.Category) }, name),
		BySeverity: grouped(counts, func(c store.FindingCount) string { return string(c.Severity) }, severity),
	}
	for _, c := range counts {
		r.All = r.All.plus(c)
	}
	return r
}

func grouped(counts []store.FindingCount, key func(store.FindingCount) string, order func(a, b rating) int) []rating {
	groups := []rating{}
	for _, c := range counts {
		i := slices.IndexFunc(groups, func(r rating) bool { return r.Name == key(c) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, rating{Name: key(c)})
		}
		groups[i] = groups[i].plus(c)
	}
	slices.SortFunc(groups, order)
	return groups
}

func (r rating) plus(c store.FindingCount) rating {
	r.Reported += c.Reported
	r.Useful += c.Useful
	r.Wrong += c.Wrong
	if rated := r.Useful + r.Wrong; rated > 0 {
		r.WrongRate = new(float64(r.Wrong) / float64(rated))
	}
	return r
}

func (r ratings) print(w io.Writer) {
	fmt.Fprintf(w, "findings of the last %s\n", plural(r.Days, "day"))
	rows := [][]string{{"BY", "", "REPORTED", "USEFUL", "WRONG", "RATE"}}
	add := func(by string, group ...rating) {
		for i, g := range group {
			rate := "-"
			if g.WrongRate != nil {
				rate = fmt.Sprintf("%.0f%%", 100**g.WrongRate)
			}
			rows = append(rows, row(firstOnly(i, by), g.Name, g.Reported, g.Useful, g.Wrong, rate))
		}
	}
	add("", r.All)
	add("rule", r.ByRule...)
	add("category", r.ByCategory...)
	add("severity", r.BySeverity...)
	writeTable(w, "", rows)
}
