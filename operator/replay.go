package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/store"
)

// replay implements criticizer deadletter replay (criticizer-processing 8.5).
func replay(ctx context.Context, args []string, c console) error {
	order, err := parseReplay(args, c)
	if err != nil {
		return err
	}
	db, cfg, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	temporal, err := c.runs(ctx, cfg)
	if err != nil {
		return err
	}
	defer temporal.Close()
	r := replayer{replayOrder: order, c: c, db: db, runs: temporal, who: c.operator()}
	letters, err := r.choose(ctx)
	if err != nil {
		return err
	}
	r.announce(letters)
	if order.dryRun {
		fmt.Fprintln(c.stdout, "nothing was done: -dry-run")
		return nil
	}
	return r.replayAll(ctx, letters)
}

// A replayOrder is what the command line asks for.
type replayOrder struct {
	// Letters are named by ids, or else by filter. One that was named and is
	// not dead is a failure; one that was merely met is passed over.
	ids          []int64
	filter       store.LetterFilter
	evidence     string
	full, dryRun bool
}

func (o replayOrder) named() bool { return len(o.ids) > 0 }

func parseReplay(args []string, c console) (order replayOrder, err error) {
	flags := c.flags("replay", deadletterUsage)
	var of choice
	flags.StringVar(&of.class, "class", "", "")
	flags.StringVar(&of.stage, "stage", "", "")
	flags.StringVar(&order.evidence, "evidence", "", "")
	flags.BoolVar(&order.full, "full", false, "")
	flags.BoolVar(&order.dryRun, "dry-run", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return order, err
	}
	if order.ids, err = letterIDs(rest); err != nil {
		return order, err
	}
	switch {
	case !order.named() && of.class == "":
		return order, badUsage("replay wants ids of dead letters, or -class CLASS")
	case order.named() && of != choice{}:
		return order, badUsage("replay wants ids or -class, not both")
	}
	if order.filter, err = of.filter(); err != nil {
		return order, err
	}
	order.filter.States = unresolved
	order.evidence, err = statement("evidence", order.evidence)
	return order, err
}

// A replayer replays dead letters one after another.
type replayer struct {
	replayOrder
	c    console
	db   *store.DB
	runs runs
	who  string
}

// choose reads the letters to replay. If one that was named does not exist,
// none is replayed: it may be a slip of the pen for any other.
func (r replayer) choose(ctx context.Context) ([]store.DeadLetter, error) {
	filter := r.filter
	if r.named() {
		filter = store.LetterFilter{IDs: r.ids}
	}
	letters, err := r.db.DeadLetters(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, id := range r.ids {
		if !slices.ContainsFunc(letters, func(l store.DeadLetter) bool { return l.ID == id }) {
			return nil, advise(fmt.Errorf("dead letter %d does not exist: nothing was replayed", id), "criticizer deadletter list shows those that wait")
		}
	}
	return letters, nil
}

// announce says what is going to be done.
func (r replayer) announce(letters []store.DeadLetter) {
	dead := slices.DeleteFunc(slices.Clone(letters), func(l store.DeadLetter) bool { return notDead(l) != nil })
	if len(dead) == 0 {
		fmt.Fprintln(r.c.stdout, "nothing to replay")
		return
	}
	from := "the failed stage"
	if r.full {
		from = "the first stage"
	}
	fmt.Fprintf(r.c.stdout, "replay %s from %s, as %s\nevidence: %s\n", plural(len(dead), "dead letter"), from, r.who, r.evidence)
	letterTable(r.c.stdout, "  ", dead)
}

// replayAll replays the letters and reports on each.
func (r replayer) replayAll(ctx context.Context, letters []store.DeadLetter) error {
	var replayed, skipped, failed int
	for _, l := range letters {
		result, err := r.replay(ctx, l.ID)
		_, skip := errors.AsType[stillAlive](err)
		switch {
		case err == nil:
			replayed++
			fmt.Fprintf(r.c.stdout, "%d  %s: %s\n", l.ID, reviewOf(l), result)
		case skip && !r.named():
			skipped++
			fmt.Fprintf(r.c.stdout, "%d  %s: skipped: %v\n", l.ID, reviewOf(l), err)
		default:
			failed++
			report(r.c.stderr, err)
		}
	}
	if len(letters) > 1 {
		fmt.Fprintf(r.c.stdout, "%d replayed, %d skipped, %d failed\n", replayed, skipped, failed)
	}
	if failed > 0 {
		return errReported
	}
	return nil
}

// stillAlive is the error of a letter that is not dead, or no longer.
type stillAlive struct{ error }

func (s stillAlive) Unwrap() error { return s.error }

func alive(l store.DeadLetter, hint, format string, args ...any) error {
	return stillAlive{advise(fmt.Errorf("dead letter %d %s", l.ID, fmt.Sprintf(format, args...)), "%s", hint)}
}

// notDead says why a letter cannot be replayed in its state; nil if it can.
func notDead(l store.DeadLetter) error {
	switch {
	case l.State == store.LetterOpen, l.Interrupted:
		return nil
	case l.State == store.LetterResolved:
		return alive(l, fmt.Sprintf("criticizer deadletter show %d tells by whom; a review is run anew with starter change-commit --review-version", l.ID),
			"is resolved: there is nothing to replay")
	case l.State == store.LetterFailedAgain:
		return alive(l, fmt.Sprintf("criticizer status %d shows the letter that its replay left", l.Changelist), "was replayed already, and failed again")
	}
	return alive(l, fmt.Sprintf("criticizer status %d shows how far it is", l.Changelist), "is being replayed already")
}

// replay replays one letter and says what came of it. What it reads it reads
// again while holding the letter, so that of two operators one acts.
func (r replayer) replay(ctx context.Context, id int64) (string, error) {
	release, ok, err := r.db.HoldDeadLetter(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", stillAlive{advise(fmt.Errorf("dead letter %d is being replayed by another operator", id), "criticizer deadletter show %d tells what came of it", id)}
	}
	defer release()
	l, err := letter(ctx, r.db, id)
	if err != nil {
		return "", err
	}
	if err := notDead(l); err != nil {
		return "", err
	}
	current, err := r.current(ctx, l)
	switch {
	case err != nil:
		return "", err
	case current.id != l.RunID && l.State == store.LetterOpen && current.closed():
		l.RunID = current.id // a replay that was ended by hand: the next goes on where it was
	case current.id != l.RunID:
		return r.adopt(ctx, l, current)
	case !current.closed():
		return "", alive(l, "wait a moment and try again", "belongs to a run that has not ended yet")
	}
	return r.reset(ctx, l)
}

func (r replayer) current(ctx context.Context, l store.DeadLetter) (currentRun, error) {
	current, err := r.runs.current(ctx, l.WorkflowID)
	if errors.Is(err, errForgotten) {
		return current, advise(fmt.Errorf("dead letter %d cannot be replayed: %w", l.ID, err),
			"start the review anew: starter change-commit --review-version %d --key %s %d", l.Version, l.WorkflowID, l.Changelist)
	}
	if err != nil {
		return current, advise(err, "check that the Temporal server is up and that temporal.address names it")
	}
	return current, nil
}

// reset records the request, then resets. Only a reset that has certainly not
// happened is taken back; one in doubt is left for the next replay to find out.
func (r replayer) reset(ctx context.Context, l store.DeadLetter) (string, error) {
	request, err := r.db.RequestReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: r.who, Evidence: r.evidence, Full: r.full})
	if err != nil {
		return "", err
	}
	newRun, err := r.runs.reset(ctx, l, request)
	if err == nil {
		return r.confirm(ctx, l, request, newRun)
	}
	// Ctrl-C ends the reset, not finding out what became of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	current, unknown := r.runs.current(ctx, l.WorkflowID)
	switch {
	case unknown != nil:
		return "", advise(fmt.Errorf("dead letter %d: it is not known whether the reset happened: %w", l.ID, err),
			"when Temporal answers again, run the same command again: it finds out first")
	case current.id != l.RunID:
		return r.adopt(ctx, l, current)
	}
	return "", errors.Join(advise(fmt.Errorf("dead letter %d was not replayed: %w", l.ID, err),
		"it is open again: try again when Temporal can do it"), r.db.WithdrawReplay(ctx, request))
}

func (r replayer) confirm(ctx context.Context, l store.DeadLetter, request store.ReplayRequest, newRun string) (string, error) {
	if err := r.db.ConfirmReplay(context.WithoutCancel(ctx), request, newRun); err != nil {
		return "", advise(fmt.Errorf("dead letter %d is replayed by run %s, but that could not be recorded: %w", l.ID, newRun, err),
			"when the database answers again, run the same command again: it records it and resets nothing")
	}
	return "replayed by run " + newRun, nil
}

// adopt takes up a replay that was interrupted between reset and confirmation:
// the current run is its work if it bears its evidence. Otherwise somebody else
// has reset the dead run, and there is nothing left to replay.
func (r replayer) adopt(ctx context.Context, l store.DeadLetter, current currentRun) (string, error) {
	pending, interrupted, err := r.db.InterruptedReplay(ctx, l.ID)
	if err != nil {
		return "", err
	}
	if interrupted {
		_, reason, err := r.runs.ResetOf(ctx, l.WorkflowID, current.id)
		if err != nil {
			return "", err
		}
		if reason == pending.Evidence {
			return r.confirm(ctx, l, pending, current.id)
		}
	}
	return "", alive(l, fmt.Sprintf("criticizer status %d shows what became of it", l.Changelist),
		"is no longer dead: run %s has taken its place", current.id)
}
