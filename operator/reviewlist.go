package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// listReviews implements criticizer review list. It asks Postgres alone.
func listReviews(ctx context.Context, args []string, c console) error {
	flags := c.flags("list", reviewUsage)
	state := flags.String("state", "", "")
	outcome := flags.String("outcome", "", "")
	since := flags.Duration("since", 0, "")
	limit := flags.Int("limit", 20, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return badUsage("list takes flags only: got %q", flags.Arg(0))
	case *since < 0:
		return badUsage("-since %s is negative", *since)
	}
	if err := checkLimit(*limit); err != nil {
		return err
	}
	filter, err := reviewFilter(*state, *outcome)
	if err != nil {
		return err
	}
	filter.Since, filter.Max = *since, *limit
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := db.RecentReviews(ctx, filter)
	switch {
	case err != nil:
		return err
	case *asJSON:
		return c.printJSON(found)
	case len(found) == 0:
		fmt.Fprintln(c.stdout, "no reviews")
		return nil
	}
	table(c.stdout, "", reviewTable(found, time.Now()))
	if len(found) == *limit {
		fmt.Fprintf(c.stdout, "the newest %d; -limit shows more\n", *limit)
	}
	return nil
}

func reviewFilter(state, outcome string) (f store.ReviewFilter, err error) {
	states := []review.JobState{
		review.JobInProgress, review.JobRetryableFailed, review.JobSucceeded, review.JobDeadLettered, review.JobCanceled,
	}
	if f.State = review.JobState(state); state != "" && !slices.Contains(states, f.State) {
		return f, badUsage("there is no state %q: want %s", state, oneOf(states...))
	}
	outcomes := []review.Outcome{review.OutcomeClean, review.OutcomeFindings, review.OutcomePartial, review.OutcomeNotReviewed}
	if f.Outcome = review.Outcome(outcome); outcome != "" && !slices.Contains(outcomes, f.Outcome) {
		return f, badUsage("there is no outcome %q: want %s", outcome, oneOf(outcomes...))
	}
	return f, nil
}

func reviewTable(found []store.RecentReview, now time.Time) [][]string {
	rows := [][]string{{"CHANGELIST", "STATE", "OUTCOME", "FINDINGS", "STARTED", "TOOK", "DETAIL"}}
	for _, r := range found {
		outcome, findings := "-", "-"
		if r.Outcome != "" {
			outcome, findings = string(r.Outcome), fmt.Sprint(r.Findings)
		}
		took := age(now.Sub(r.CreatedAt)) + " so far"
		if r.FinishedAt != nil {
			took = age(r.FinishedAt.Sub(r.CreatedAt))
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d v%d", r.Changelist, r.Version), string(r.State), outcome, findings,
			stamp(r.CreatedAt), took, reviewDetail(r),
		})
	}
	return rows
}

// reviewDetail is what else there is to say of a review: why it was not made, what
// it died of, how far it has come, or what it waits for.
func reviewDetail(r store.RecentReview) string {
	var words []string
	if r.Shelved {
		words = append(words, "shelf")
	}
	if r.SkippedBy != "" {
		words = append(words, "skipped: "+string(r.SkippedBy))
	}
	if l := r.DeadLetter; l != nil {
		words = append(words, fmt.Sprintf("%s in stage %s, dead letter %d %s", l.Class, l.Stage, l.ID, l.State))
	}
	if r.Stage != "" {
		words = append(words, "in stage "+string(r.Stage))
	}
	if r.AwaitsSlot {
		words = append(words, "waits for a slot")
	}
	return strings.Join(words, "; ")
}
