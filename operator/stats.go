package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

const statsUsage = `usage: criticizer stats [-days N] [-json]

Tells how many findings were reported, and what readers said of them, by rule
pack, category and severity. The rate is that of the wrong among those of which
somebody said something.

flags:
  -days N  count findings of the last N days (default 90)
  -json    print JSON

examples:
  criticizer stats
  criticizer stats -days 7 -json

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// A rating is how the findings of one kind fared.
type rating struct {
	Name     string `json:"name"`
	Reported int    `json:"reported"`
	Useful   int    `json:"useful"`
	Wrong    int    `json:"wrong"`
	// WrongRate is nil as long as nobody has said anything.
	WrongRate *float64 `json:"wrong_rate"`
}

// ratings are what stats tells.
type ratings struct {
	Days       int      `json:"days"`
	All        rating   `json:"all"`
	ByRule     []rating `json:"by_rule"`
	ByCategory []rating `json:"by_category"`
	BySeverity []rating `json:"by_severity"`
}

// stats implements criticizer stats.
func stats(ctx context.Context, args []string, c console) error {
	flags := c.flags("stats", statsUsage)
	days := flags.Int("days", 90, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return badUsage("stats takes flags only: got %q", flags.Arg(0))
	case *days < 1:
		return badUsage("-days is %d: want 1 or more", *days)
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	counts, err := db.FindingCounts(ctx, time.Duration(*days)*24*time.Hour)
	if err != nil {
		return err
	}
	rated := rate(*days, counts)
	if *asJSON {
		return c.printJSON(rated)
	}
	c.printRatings(rated)
	return nil
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

// grouped sums up counts that have the same key.
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
	if said := r.Useful + r.Wrong; said > 0 {
		r.WrongRate = new(float64(r.Wrong) / float64(said))
	}
	return r
}

func (c console) printRatings(r ratings) {
	fmt.Fprintf(c.stdout, "findings of the last %s\n", plural(r.Days, "day"))
	rows := [][]string{{"BY", "", "REPORTED", "USEFUL", "WRONG", "RATE"}}
	add := func(by string, group ...rating) {
		for i, g := range group {
			rows = append(rows, []string{atFirst(i, by), printable(g.Name), fmt.Sprint(g.Reported), fmt.Sprint(g.Useful), fmt.Sprint(g.Wrong), g.percent()})
		}
	}
	add("", r.All)
	add("rule", r.ByRule...)
	add("category", r.ByCategory...)
	add("severity", r.BySeverity...)
	table(c.stdout, "", rows)
}

// percent is the rate as people read it.
func (r rating) percent() string {
	if r.WrongRate == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**r.WrongRate)
}
