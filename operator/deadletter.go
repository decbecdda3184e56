package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

const deadletterUsage = `usage: criticizer deadletter list [flags] [-json]
       criticizer deadletter show ID [-json]
       criticizer deadletter replay ID... -evidence TEXT [-full] [-dry-run]
       criticizer deadletter replay -class CLASS [-stage STAGE] -evidence TEXT [-full] [-dry-run]
       criticizer deadletter resolve ID -evidence TEXT
       criticizer deadletter annotate ID -note TEXT

  list      list what could not be finished
  show      tell the whole story of one letter
  replay    run the failed stage again, and what comes after it; no finished
            stage is run again. What is to be done is printed before it is
  resolve   close a letter without a replay, for a review that was done by hand
            or need not be done
  annotate  add a note to a letter's story

docs/runbook.md says what to do about each class.

flags of list, which each narrow it:
  -class CLASS     of this error class, such as AUTH_DENIED
  -stage STAGE     that failed in fetch, llm or notify
  -older-than D    recorded longer ago than 30m, 24h
  -escalated       replayed in vain: the same failure came again
  -unexplained      reset by somebody who recorded no evidence, in any state
  -state STATE     open, replaying, failed_again, resolved or all
                   (default: what is unresolved, which is open and replaying)

flags:
  -json            print JSON
  -evidence TEXT   what was remedied and where that is recorded; it goes into
                   Temporal's history and the audit log
  -full            replay from the first stage
  -dry-run         print what is to be done, and end
  -note TEXT       what to note; it goes into the audit log

examples:
  criticizer deadletter list -class AUTH_DENIED -stage llm
  criticizer deadletter show 12 -json
  criticizer deadletter replay 12 -evidence "INC-42: API key renewed"
  criticizer deadletter resolve 12 -evidence "INC-42: reviewed by hand"
  criticizer deadletter annotate 12 -note "INC-42: key expires in May"

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// deadletter implements criticizer deadletter.
func deadletter(ctx context.Context, args []string, c console) error {
	flags := c.flags("deadletter", deadletterUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	actions := map[string]command{"list": list, "show": show, "replay": replay, "resolve": resolve, "annotate": annotate}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return notOne("deadletter", flags.Arg(0), "list", "show", "replay", "resolve", "annotate")
	}
	return action(ctx, flags.Args()[1:], c)
}

// A choice is the flags that choose dead letters by what they are.
type choice struct{ class, stage string }

// filter checks the choice.
func (ch choice) filter() (store.LetterFilter, error) {
	known := func(d failure.Description) bool { return string(d.Class) == ch.class }
	if ch.class != "" && !slices.ContainsFunc(failure.Descriptions(), known) {
		return store.LetterFilter{}, advise(badUsage("there is no error class %q", ch.class),
			"docs/failures.md lists the classes, criticizer deadletter list shows what waits")
	}
	stages := []string{string(review.StageFetch), string(review.StageLLM), string(review.StageNotify)}
	if ch.stage != "" && !slices.Contains(stages, ch.stage) {
		return store.LetterFilter{}, badUsage("there is no stage %q: want %s", ch.stage, oneOf(stages...))
	}
	return store.LetterFilter{Class: failure.Class(ch.class), Stage: review.Stage(ch.stage)}, nil
}

// letterIDs reads the ids of dead letters, each once.
func letterIDs(args []string) ([]int64, error) {
	var ids []int64
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, badUsage("%q is not the id of a dead letter: want a number, as in the first column of criticizer deadletter list", arg)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// parseOne reads the flags and the id of the one dead letter an action is about.
func parseOne(flags flagSet, args []string) (int64, error) {
	rest, err := flags.parseMixed(args)
	if err != nil {
		return 0, err
	}
	if len(rest) != 1 {
		return 0, badUsage("%s wants the id of one dead letter: got %d arguments", flags.Name(), len(rest))
	}
	ids, err := letterIDs(rest)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// letter reads one dead letter.
func letter(ctx context.Context, db *store.DB, id int64) (store.DeadLetter, error) {
	l, err := db.DeadLetter(ctx, id)
	if failure.ClassOf(err) == failure.NotFound {
		return l, advise(err, "criticizer deadletter list -state all shows all there are")
	}
	return l, err
}

// resolve implements criticizer deadletter resolve.
func resolve(ctx context.Context, args []string, c console) error {
	flags := c.flags("resolve", deadletterUsage)
	evidence := flags.String("evidence", "", "")
	id, err := parseOne(flags, args)
	if err != nil {
		return err
	}
	text, err := statement("evidence", *evidence)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	l, err := letter(ctx, db, id)
	if err != nil {
		return err
	}
	if l.State == store.LetterResolved {
		return advise(fmt.Errorf("dead letter %d is resolved already, by %s", id, somebody(l.ResolvedBy)),
			"criticizer deadletter annotate %d -note TEXT adds to its story", id)
	}
	if err := db.ResolveDeadLetter(ctx, id, c.operator(), text); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "dead letter %d, %s: resolved\n", id, reviewOf(l))
	return nil
}

// annotate implements criticizer deadletter annotate.
func annotate(ctx context.Context, args []string, c console) error {
	flags := c.flags("annotate", deadletterUsage)
	note := flags.String("note", "", "")
	id, err := parseOne(flags, args)
	if err != nil {
		return err
	}
	text, err := statement("note", *note)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	l, err := letter(ctx, db, id)
	if err != nil {
		return err
	}
	if err := db.AnnotateDeadLetter(ctx, id, c.operator(), text); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "dead letter %d, %s: noted\n", id, reviewOf(l))
	return nil
}
