package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

func listRewriteJobs(ctx context.Context, args []string, c console) error {
	flags := c.flags("jobs", rewriteUsage)
	status := flags.String("status", "", "")
	request := flags.String("request", "", "")
	limit := flags.Int("limit", 50, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("jobs takes flags only: got %q", flags.Arg(0))
	}
	filter, err := rewriteFilter(*status, *request, *limit)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	jobs, err := db.Rewrites().Find(ctx, filter)
	switch {
	case err != nil:
		return err
	case *asJSON:
		return c.printJSON(jobs)
	case len(jobs) == 0:
		fmt.Fprintln(c.stdout, "no rewrite jobs")
		return nil
	}
	table(c.stdout, "", rewriteJobTable(jobs))
	return nil
}

func rewriteFilter(status, request string, limit int) (store.RewriteFilter, error) {
	filter := store.RewriteFilter{RequestID: request, Limit: limit}
	if status != "" {
		canonical, err := rewrite.ParseStatus(status)
		if err != nil {
			return filter, usageError{err}
		}
		filter.Statuses = []rewrite.Status{canonical}
	}
	if request != "" && uuid.Validate(request) != nil {
		return filter, badUsage("-request %q is no UUID", request)
	}
	return filter, checkLimit(limit)
}

func rewriteJobTable(jobs []rewrite.Job) [][]string {
	rows := [][]string{{"JOB", "STATUS", "MODE", "MODEL", "TRIES", "AGE", "NOT BEFORE", "LAST ERROR"}}
	for _, j := range jobs {
		mode, model := "", ""
		if j.Routing != nil {
			mode, model = string(j.Routing.Mode), printable(j.Routing.Model)
		}
		rows = append(rows, []string{
			j.ID, string(j.Status), mode, model, fmt.Sprintf("%d/%d", j.AttemptCount, j.MaxAttempts),
			age(time.Since(j.CreatedAt)), stampIf(j.NotBeforeAt), textIf(j.LastError),
		})
	}
	return rows
}

func stampIf(at *time.Time) string {
	if at == nil {
		return ""
	}
	return stamp(*at)
}

func textIf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A rewriteStory is one job and its trail.
type rewriteStory struct {
	rewrite.Job
	Transitions []store.RewriteTransition `json:"transitions"`
}

func showRewriteJob(ctx context.Context, args []string, c console) error {
	flags := c.flags("show", rewriteUsage)
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	id, err := rewriteJobID("show", rest)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	var story rewriteStory
	if story.Job, err = db.Rewrites().Job(ctx, id); err != nil {
		return adviseRewrite(err)
	}
	if story.Transitions, err = db.Rewrites().Trail(ctx, id); err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(story)
	}
	c.printRewriteStory(story)
	return nil
}

func (c console) printRewriteStory(s rewriteStory) {
	fmt.Fprintf(c.stdout, "rewrite job %s: %s, attempt %d of %d\n", s.ID, s.Status, s.AttemptCount, s.MaxAttempts)
	fmt.Fprintf(c.stdout, "  request %s, recipient %s\n", s.RequestID, s.RecipientUserID)
	fmt.Fprintf(c.stdout, "  %s, %s, %s to %s\n", s.Surface, s.Strength, s.Languages.From, s.Languages.To)
	if r := s.Routing; r != nil {
		fmt.Fprintf(c.stdout, "  %s %s by %s, prompt %s, policy %s, %s\n", printable(r.Provider), printable(r.Model),
			printable(string(r.AdapterKind)), printable(r.PromptVersion), printable(r.PolicyVersion), r.Mode)
	}
	if s.NotBeforeAt != nil {
		fmt.Fprintf(c.stdout, "  not before %s\n", stamp(*s.NotBeforeAt))
	}
	if s.BatchID != nil {
		fmt.Fprintf(c.stdout, "  batch %s\n", *s.BatchID)
	}
	rows := [][]string{{"AT", "STATUS", "TRIES", "ERROR", "RUN", "BY"}}
	for _, t := range s.Transitions {
		rows = append(rows, []string{stamp(t.At), string(t.To), fmt.Sprint(t.Attempts), t.Error, t.RunID, printable(t.Login)})
	}
	table(c.stdout, "  ", rows)
}

func rewriteJobID(action string, args []string) (string, error) {
	if len(args) != 1 || uuid.Validate(args[0]) != nil {
		return "", badUsage("%s wants one job id, a UUID", action)
	}
	return args[0], nil
}

func adviseRewrite(err error) error {
	return advise(err, "criticizer rewrite jobs lists the jobs")
}
