package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// reconcilePatience is more than a run takes whose mail server answers.
const reconcilePatience = 5 * time.Minute

// reconcileDeliveries implements criticizer delivery reconcile.
func reconcileDeliveries(ctx context.Context, args []string, c console) error {
	flags := c.flags("reconcile", deliveryUsage)
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("reconcile takes flags only: got %q", flags.Arg(0))
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	temporal, err := c.runs(ctx, cfg)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(ctx, reconcilePatience)
	defer cancel()
	done, err := temporal.Reconcile(ctx)
	switch {
	case failure.ClassOf(err) == failure.NotFound:
		return advise(err, "a worker that serves the stage workflows makes it: start one")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return advise(fmt.Errorf("the reconciliation has no end after %s", reconcilePatience),
			"it goes on by itself; check that a worker serves the stage notify and that the mail server answers")
	case err != nil:
		return advise(err, "the Temporal UI shows the run under criticizer-reconciliation; the worker's log says what failed")
	case *asJSON:
		return c.printJSON(done)
	}
	table(c.stdout, "", reconciledTable(done))
	return nil
}

func reconciledTable(done activities.Reconciled) [][]string {
	rows := [][]string{{"looked at", fmt.Sprint(done.LookedAt)}}
	for _, line := range []struct {
		n    int
		what string
	}{
		{done.Confirmed, "confirmed: sent, and the mail server has a record"},
		{done.Settled, "found to have been accepted, and marked sent"},
		{done.Sent, "sent now"},
		{done.Refused, "refused for good: criticizer delivery list -status failed"},
		{done.Requeued, "held, found not to have been accepted, and released"},
		{done.Unproven, "marked sent without a record at the mail server: see the worker's log"},
		{done.Open, "still open"},
	} {
		if line.n > 0 {
			rows = append(rows, []string{"  " + fmt.Sprint(line.n), line.what})
		}
	}
	return rows
}
