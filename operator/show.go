package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/store"
)

// A story is all that is known about one dead letter.
type story struct {
	store.DeadLetter
	Replays []store.Replay     `json:"replays"`
	Page    *store.PageState   `json:"page,omitempty"`
	Trail   []store.AuditEntry `json:"trail"`
}

// show implements criticizer deadletter show.
func show(ctx context.Context, args []string, c console) error {
	flags := c.flags("show", deadletterUsage)
	asJSON := flags.Bool("json", false, "")
	id, err := parseOne(flags, args)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := storyOf(ctx, db, id)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(s)
	}
	c.printStory(s)
	return nil
}

func storyOf(ctx context.Context, db *store.DB, id int64) (s story, err error) {
	if s.DeadLetter, err = letter(ctx, db, id); err != nil {
		return s, err
	}
	if s.Replays, err = db.Replays(ctx, id); err != nil {
		return s, err
	}
	if s.Page, err = db.PageOf(ctx, id); err != nil {
		return s, err
	}
	s.Trail, err = db.Trail(ctx, id)
	return s, err
}

func (c console) printStory(s story) {
	fmt.Fprintf(c.stdout, "dead letter %d: %s in stage %s\n\n", s.ID, s.ErrorClass, s.Stage)
	about := s.ErrorClass.Describe()
	rows := [][]string{
		{"review", reviewOf(s.DeadLetter)},
		{"workflow", s.WorkflowID},
		{"dead run", s.RunID},
		{"state", stateOf(s.DeadLetter)},
		{"category", string(about.Category)},
		{"attempts", fmt.Sprintf("%d, from %s to %s", s.Attempts, stamp(s.FirstFailureAt), stamp(s.LastFailureAt))},
		{"recorded", fmt.Sprintf("%s, %s ago", stamp(s.RecordedAt), age(time.Since(s.RecordedAt)))},
		{"context", contextOf(s.SanitizedContext)},
		{"who acts", about.Actor},
		{"what to do", s.Hint},
	}
	if s.Page != nil {
		rows = append(rows, []string{"page", pageLine(s)})
	}
	if s.ResolvedAt != nil {
		rows = append(rows, []string{"resolved", stamp(*s.ResolvedAt) + " " + byWhom(s.ResolvedBy, s.Resolution)})
	}
	table(c.stdout, "", slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" }))
	c.printReplays("", s.Replays)
	c.printTrail(s.Trail)
	fmt.Fprintf(c.stdout, "\nlast error:\n%s\n", indented(s.LastStack, "  "))
}

func pageLine(s story) string {
	switch {
	case s.Page.SentAt != nil:
		return fmt.Sprintf("%s: sent %s", s.Page.Reason, stamp(*s.Page.SentAt))
	case s.State == store.LetterOpen, s.State == store.LetterReplaying:
		return fmt.Sprintf("%s: not sent yet, %s", s.Page.Reason, plural(s.Page.Attempts, "attempt"))
	}
	return fmt.Sprintf("%s: not sent, for this is settled", s.Page.Reason)
}

func (c console) printReplays(indent string, replays []store.Replay) {
	if len(replays) == 0 {
		return
	}
	fmt.Fprintf(c.stdout, "\n%sreplays:\n", indent)
	for _, r := range replays {
		fmt.Fprintf(c.stdout, "%s  %s  run %s%s\n%s    %s\n", indent, stamp(r.StartedAt), r.NewRunID, kindOf(r), indent, byWhom(r.Who, r.Reason))
	}
}

func kindOf(r store.Replay) string {
	kind := ""
	if r.Full {
		kind += ", from the first stage"
	}
	if !r.Explained {
		kind += ", UNEXPLAINED"
	}
	return kind
}

func (c console) printTrail(trail []store.AuditEntry) {
	if len(trail) == 0 {
		return
	}
	fmt.Fprintln(c.stdout, "\naudit log:")
	for _, e := range trail {
		fmt.Fprintf(c.stdout, "  %s  %s (signed in as %s) %s%s\n", stamp(e.At), e.Actor, e.Login, e.Action, said(e))
	}
}

// said is what an entry of the audit log states in words.
func said(e store.AuditEntry) string {
	var detail struct{ Evidence, Note, Reason string }
	_ = json.Unmarshal(e.Detail, &detail) // what is not of this form states nothing
	if words := detail.Evidence + detail.Note + detail.Reason; words != "" {
		return ": " + printable(words)
	}
	return ""
}
