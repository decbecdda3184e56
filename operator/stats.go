package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

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

// grouped sums the counts that have the same key.
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
