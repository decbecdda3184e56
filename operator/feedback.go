package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

const feedbackUsage = `usage: criticizer feedback TOKEN useful|wrong [-note TEXT]
       criticizer feedback list [-json]
       criticizer feedback forget TOKEN [-note TEXT]

Records what a reader says of a finding. TOKEN stands under the finding in the
mail. What is wrong is not reported again in that file, as long as the quoted
code stays; the last word counts. Who said what, and when, is in the audit log.
criticizer stats tells how findings fare, by rule, category and severity.

  list    print what is not reported again
  forget  take back what was said: the finding may be reported again

flags:
  -note TEXT  why
  -json       print JSON

examples:
  criticizer feedback k3vq2mzt5abcd wrong -note "closed by the caller"
  criticizer feedback forget k3vq2mzt5abcd

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// feedback implements criticizer feedback.
func feedback(ctx context.Context, args []string, c console) error {
	flags := c.flags("feedback", feedbackUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "list":
		return listWrong(ctx, flags.Args()[1:], c)
	case "forget":
		return forget(ctx, flags.Args()[1:], c)
	}
	return giveFeedback(ctx, flags.Args(), c)
}

func giveFeedback(ctx context.Context, args []string, c console) error {
	rest, note, err := c.feedbackArgs(args)
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return badUsage("feedback wants a token and useful or wrong: got %s", plural(len(rest), "argument"))
	}
	opinion := review.Opinion(rest[1])
	if opinion != review.OpinionUseful && opinion != review.OpinionWrong {
		return badUsage("feedback %s wants useful or wrong: got %q", rest[0], rest[1])
	}
	finding, before, err := c.tell(ctx, rest[0], opinion, note)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "%s: %s\n", findingLine(finding), effectOf(opinion, before.Opinion))
	return nil
}

// effectOf says what an opinion has changed.
func effectOf(now, before review.Opinion) string {
	line := string(now)
	if before != "" && before != now {
		line += ", no longer " + string(before)
	}
	if now == review.OpinionWrong {
		line += "; it is not reported there again"
	}
	return line
}

func forget(ctx context.Context, args []string, c console) error {
	rest, note, err := c.feedbackArgs(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return badUsage("forget wants one token: got %s", plural(len(rest), "argument"))
	}
	finding, before, err := c.tell(ctx, rest[0], "", note)
	if err != nil {
		return err
	}
	if before.Opinion == "" {
		fmt.Fprintf(c.stdout, "%s: nothing was said of it\n", findingLine(finding))
		return nil
	}
	fmt.Fprintf(c.stdout, "%s: no longer %s, as %s said %s\n", findingLine(finding), before.Opinion, before.Who, stamp(before.When))
	return nil
}

// feedbackArgs reads the arguments of a command that takes a note.
func (c console) feedbackArgs(args []string) (rest []string, note string, err error) {
	flags := c.flags("feedback", feedbackUsage)
	flags.StringVar(&note, "note", "", "")
	if rest, err = flags.parseMixed(args); err != nil || note == "" {
		return rest, "", err
	}
	note, err = statement("note", note)
	return rest, note, err
}

// tell records an opinion on the finding that a token names.
func (c console) tell(ctx context.Context, word string, o review.Opinion, note string) (store.ReportedFinding, store.Feedback, error) {
	const hint = "copy the token from under the finding in the mail; criticizer feedback list shows those of findings marked wrong"
	token, ok := review.ParseFeedbackToken(word)
	if !ok {
		return store.ReportedFinding{}, store.Feedback{}, advise(badUsage("%q is not a token", printable(word)), hint)
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return store.ReportedFinding{}, store.Feedback{}, err
	}
	defer db.Close()
	finding, before, err := db.GiveFeedback(ctx, token, o, c.operator(), note)
	if failure.ClassOf(err) == failure.NotFound {
		err = advise(err, hint)
	}
	return finding, before, err
}

func listWrong(ctx context.Context, args []string, c console) error {
	asJSON, err := c.onlyJSON("list", feedbackUsage, args)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	wrong, err := db.AllWrongFindings(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		return c.printJSON(wrong)
	case len(wrong) == 0:
		fmt.Fprintln(c.stdout, "nothing is marked wrong")
		return nil
	}
	rows := [][]string{{"TOKEN", "MARKED", "BY", "FINDING", "PLACES", "NOTE"}}
	for _, w := range wrong {
		rows = append(rows, []string{w.Token, stamp(w.MarkedAt), w.Who, findingLine(w.ReportedFinding), fmt.Sprint(w.Places), printable(w.Note)})
	}
	table(c.stdout, "", rows)
	return nil
}

// findingLine says which finding it is.
func findingLine(f store.ReportedFinding) string {
	return fmt.Sprintf("%s %s in %s, rule %s, changelist %d v%d",
		f.Severity, f.Category, printable(f.Path), cmp.Or(f.Rule, "none"), f.Changelist, f.Version)
}
