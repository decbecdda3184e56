package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// demo reviews some changelists, prints the results, and stops.
func demo(ctx context.Context, opts options, out *progress, stdout io.Writer) error {
	d, err := openDepot(ctx, opts)
	if err != nil {
		return err
	}
	return inEnvironment(ctx, opts, d, out, func(running context.Context, e *environment) error {
		if err := e.reviewAndShow(running, stdout); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "to read the mails in a browser: make up, with the same settings\n")
		return nil
	})
}

// up does the same and runs until ctx ends. With P4PORT it reviews changelists of
// that server.
func up(ctx context.Context, opts options, out *progress, stdout io.Writer) error {
	open := openDepot
	if os.Getenv("P4PORT") != "" {
		open = realDepot
	}
	d, err := open(ctx, opts)
	if err != nil {
		return err
	}
	return inEnvironment(ctx, opts, d, out, func(running context.Context, e *environment) error {
		err := e.reviewAndShow(running, stdout)
		if errors.Is(err, errFailedReviews) {
			out.say("%v", err) // the user can look into it
		} else if err != nil {
			return err
		}
		e.explain(stdout)
		<-running.Done()
		out.say("stopping")
		if ctx.Err() != nil {
			return nil // stopped by the user
		}
		return context.Cause(running)
	})
}

// inEnvironment starts an environment, calls do with it, and stops it.
func inEnvironment(ctx context.Context, opts options, d depot, out *progress, do func(context.Context, *environment) error) error {
	ctx, s, err := openStack(ctx, opts.stateDir(), out)
	if err != nil {
		return err
	}
	defer s.close()
	e, err := startEnvironment(ctx, s, opts, d)
	if err != nil {
		return err
	}
	return do(ctx, e)
}

// explain prints the addresses and the next commands.
func (e *environment) explain(stdout io.Writer) {
	fmt.Fprintf(stdout, `mail:     %s
reviews:  %s
review another changelist:
  %s --config %s change-commit --wait CHANGELIST
show one as an operator sees it:
  %s status CHANGELIST
Ctrl-C stops everything
`, e.settings.inboxURL, e.temporalURL, e.command("starter"), e.config, e.tool)
}
