package main

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/store"
)

// unresolved are the states that want somebody's attention. A letter that
// failed again has left its place to the letter of its replay.
var unresolved = []store.LetterState{store.LetterOpen, store.LetterReplaying}

// statesNamed reads the flag -state. What is unexplained is a matter of the
// past, so without the flag it is looked for in every state.
func statesNamed(word string, unexplained bool) ([]store.LetterState, error) {
	switch state := store.LetterState(word); state {
	case "":
		if unexplained {
			return nil, nil
		}
		return unresolved, nil
	case "all":
		return nil, nil
	case store.LetterOpen, store.LetterReplaying, store.LetterFailedAgain, store.LetterResolved:
		return []store.LetterState{state}, nil
	}
	return nil, badUsage("there is no state %q: want open, replaying, failed_again, resolved or all", word)
}

// list implements criticizer deadletter list.
func list(ctx context.Context, args []string, c console) error {
	flags := c.flags("list", deadletterUsage)
	var of choice
	flags.StringVar(&of.class, "class", "", "")
	flags.StringVar(&of.stage, "stage", "", "")
	olderThan := flags.Duration("older-than", 0, "")
	escalated := flags.Bool("escalated", false, "")
	unexplained := flags.Bool("unexplained", false, "")
	state := flags.String("state", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	states, err := statesNamed(*state, *unexplained)
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return badUsage("list takes flags only: got %q", flags.Arg(0))
	case *olderThan < 0:
		return badUsage("-older-than %s is negative", *olderThan)
	}
	filter, err := of.filter()
	if err != nil {
		return err
	}
	filter.States, filter.OlderThan, filter.Escalated, filter.Unexplained = states, *olderThan, *escalated, *unexplained
	return c.list(ctx, filter, *asJSON)
}

func (c console) list(ctx context.Context, filter store.LetterFilter, asJSON bool) error {
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	letters, err := db.DeadLetters(ctx, filter)
	switch {
	case err != nil:
		return err
	case asJSON:
		return c.printJSON(letters)
	case len(letters) == 0:
		fmt.Fprintln(c.stdout, "no dead letters")
		return nil
	}
	letterTable(c.stdout, "", letters)
	return nil
}
