package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

const statusUsage = `usage: criticizer status CHANGELIST [-json]

Tells the story of every review of a changelist: its job, its current run in
Temporal with stages and attempts, which model made it and at what cost, what
was dropped of what it said, who was told, what was dead-lettered, and who
replayed it.

flags:
  -json  print a JSON array

examples:
  criticizer status 4711
  criticizer status 4711 -json | jq '.[].state'

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// A reviewStory is one review, from its row to its mails.
type reviewStory struct {
	store.ReviewRow
	Run         *runStory           `json:"run,omitempty"`   // nil if Temporal was not asked or has forgotten it
	Waits       *store.Wait         `json:"waits,omitempty"` // nil unless it waits for slots
	Made        *review.Record      `json:"made,omitempty"`  // nil until a model has reviewed it
	Deliveries  []store.DeliveryRow `json:"deliveries"`
	DeadLetters []story             `json:"dead_letters"`

	asked bool // Temporal was
}

// status implements criticizer status.
func status(ctx context.Context, args []string, c console) error {
	flags := c.flags("status", statusUsage)
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return badUsage("status wants one changelist: got %d arguments", len(rest))
	}
	cl, err := review.ParseChangelist(rest[0])
	if err != nil {
		return usageError{err}
	}
	stories, err := c.stories(ctx, cl)
	if stories == nil {
		return err
	}
	if *asJSON {
		return errors.Join(c.printJSON(stories), err)
	}
	for i, s := range stories {
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		c.printReview(s)
	}
	return err
}

// stories tells what is known. With the error that says why Temporal could not
// be asked come the stories of the database alone.
func (c console) stories(ctx context.Context, cl review.Changelist) ([]reviewStory, error) {
	db, cfg, err := c.database(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Reviews(ctx, cl)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, advise(fmt.Errorf("changelist %d has no review", cl), "starter change-commit %d starts one", cl)
	}
	stories, err := tell(ctx, db, cl, rows)
	if err != nil {
		return nil, err
	}
	temporal, err := c.runs(ctx, cfg)
	if err != nil {
		return stories, err
	}
	defer temporal.Close()
	return stories, addRuns(ctx, temporal, stories)
}

func addRuns(ctx context.Context, temporal runs, stories []reviewStory) (err error) {
	for i := range stories {
		s := &stories[i]
		if s.Run, err = temporal.story(ctx, s.WorkflowID); err != nil && !errors.Is(err, errForgotten) {
			return err
		}
		s.asked = true
	}
	return nil
}

// tell gathers what belongs to each review in the database.
func tell(ctx context.Context, db *store.DB, cl review.Changelist, rows []store.ReviewRow) ([]reviewStory, error) {
	deliveries, err := db.ReviewDeliveries(ctx, cl)
	if err != nil {
		return nil, err
	}
	letters, err := db.DeadLetters(ctx, store.LetterFilter{Changelist: cl})
	if err != nil {
		return nil, err
	}
	made, err := db.ReviewRecords(ctx, cl)
	if err != nil {
		return nil, err
	}
	waits, err := db.Waits(ctx, cl)
	if err != nil {
		return nil, err
	}
	stories := make([]reviewStory, len(rows))
	for i, row := range rows {
		s := reviewStory{ReviewRow: row, Deliveries: []store.DeliveryRow{}, DeadLetters: []story{}}
		if record, ok := made[row.Version]; ok {
			s.Made = &record
		}
		if wait, ok := waits[row.Version]; ok {
			s.Waits = &wait
		}
		for _, d := range deliveries {
			if d.Version == row.Version {
				s.Deliveries = append(s.Deliveries, d)
			}
		}
		for _, l := range letters {
			if l.Version != row.Version {
				continue
			}
			full, err := storyOf(ctx, db, l.ID)
			if err != nil {
				return nil, err
			}
			s.DeadLetters = append(s.DeadLetters, full)
		}
		stories[i] = s
	}
	return stories, nil
}

func (c console) printReview(s reviewStory) {
	fmt.Fprintf(c.stdout, "changelist %d, version %d: %s\n", s.Changelist, s.Version, verdict(s.Job))
	rows := [][]string{{"workflow", s.WorkflowID}, {"begun", stamp(s.CreatedAt)}}
	if s.Shelved {
		rows = append(rows, []string{"of", "what was shelved"})
	}
	switch {
	case s.SkippedBy != "":
		rows = append(rows, []string{"skipped", string(s.SkippedBy)})
	case s.Outcome == review.OutcomeNotReviewed, s.Outcome == review.OutcomePartial:
		rows = append(rows, []string{"left out", fmt.Sprintf("criticizer review show %d -review-version %d tells what, and why", s.Changelist, s.Version)})
	}
	if s.FinishedAt != nil {
		rows = append(rows, []string{"ended", stamp(*s.FinishedAt)})
	}
	switch {
	case !s.asked:
		rows = append(rows, []string{"run", s.RunID + ", of which Temporal could not be asked"})
	case s.Run == nil:
		rows = append(rows, []string{"run", s.RunID + ", which Temporal has forgotten"})
	default:
		rows = append(rows, []string{"run", s.Run.ID + " " + s.Run.Status})
		for i, a := range s.Run.Activities {
			rows = append(rows, []string{atFirst(i, "stages"), a.line()})
		}
	}
	if s.Waits != nil {
		rows = append(rows, []string{"waits", fmt.Sprintf("for a slot of %s, since %s", strings.Join(s.Waits.For, " and of "), stamp(s.Waits.Since))})
	}
	rows = append(rows, makingRows(s.Made)...)
	for i, d := range s.Deliveries {
		rows = append(rows, []string{atFirst(i, "mails"), deliveryLine(d)})
	}
	table(c.stdout, "  ", rows)
	for _, l := range s.DeadLetters {
		fmt.Fprintf(c.stdout, "\n  dead letter %d: %s in stage %s after %s, %s\n", l.ID, l.ErrorClass, l.Stage,
			plural(l.Attempts, "attempt"), stateOf(l.DeadLetter))
		switch {
		case l.ResolvedAt != nil:
			fmt.Fprintf(c.stdout, "    resolved %s %s\n", stamp(*l.ResolvedAt), byWhom(l.ResolvedBy, l.Resolution))
		case l.State == store.LetterOpen, l.Interrupted: // not what is replayed, or has a new letter
			fmt.Fprintf(c.stdout, "    to do: %s\n", l.Hint)
		}
		for _, r := range l.Replays {
			fmt.Fprintf(c.stdout, "    replayed %s %s%s\n", stamp(r.StartedAt), byWhom(r.Who, r.Reason), kindOf(r))
		}
	}
}

// atFirst labels the first of several rows.
func atFirst(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

func verdict(j review.Job) string {
	if j.State != review.JobSucceeded {
		return string(j.State)
	}
	return fmt.Sprintf("%s, %s, %s", j.State, j.Outcome, plural(j.Findings, "finding"))
}

func deliveryLine(d store.DeliveryRow) string {
	line := fmt.Sprintf("%s %s, %s", d.Recipient, d.Status, plural(d.Attempts, "attempt"))
	switch {
	case d.NotifiedAt != nil:
		line += ", " + stamp(*d.NotifiedAt)
	case d.Begun:
		line += ", the last one's end unknown"
	case d.FailureClass != "":
		line += ", " + d.FailureClass
	}
	return line
}
