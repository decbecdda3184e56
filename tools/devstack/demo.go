package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// demo reviews some changelists, shows what came of them, and stops.
func demo(ctx context.Context, opts options, out *progress, stdout io.Writer) error {
	d, err := openDepot(ctx, opts)
	if err != nil {
		return err
	}
	return onSite(ctx, opts, d, out, func(running context.Context, at *site) error {
		rows, err := at.reviewAndShow(running, stdout)
		if err != nil {
			return err
		}
		if err := showMail(running, stdout, at.settings.inboxURL, rows); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "to read the mails in a browser: make up%s\n", sameAgain(opts))
		return nil
	})
}

// up is demo, and stays until it is told to stop. With P4PORT it reviews what
// is on that server.
func up(ctx context.Context, opts options, out *progress, stdout io.Writer) error {
	open := openDepot
	if opts.getenv("P4PORT") != "" {
		open = realDepot
	}
	d, err := open(ctx, opts)
	if err != nil {
		return err
	}
	return onSite(ctx, opts, d, out, func(running context.Context, at *site) error {
		_, err := at.reviewAndShow(running, stdout)
		if failed, ok := errors.AsType[failedReviews](err); ok {
			out.say("%v", failed) // a reason to stay and look, not to stop
		} else if err != nil {
			return err
		}
		at.explain(stdout)
		<-running.Done()
		out.say("stopping")
		if ctx.Err() != nil {
			return nil // as asked
		}
		return context.Cause(running)
	})
}

// onSite starts a site, does something there, and stops the site.
func onSite(ctx context.Context, opts options, d depot, out *progress, do func(context.Context, *site) error) error {
	ctx, s, err := openStack(ctx, opts.stateDir(), out)
	if err != nil {
		return err
	}
	defer s.close()
	at, err := startSite(ctx, s, opts, d)
	if err != nil {
		return err
	}
	return do(ctx, at)
}

// reviewAndShow reviews the site's changelists and shows the result as a table
// and as JSON. It returns failedReviews if some failed.
func (at *site) reviewAndShow(ctx context.Context, stdout io.Writer) ([]row, error) {
	rows, err := at.reviewAll(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(at.opts.buildDir(), "demo.json")
	if err := writeJSON(file, rows); err != nil {
		return nil, err
	}
	if err := writeTable(stdout, rows); err != nil {
		return nil, err
	}
	fmt.Fprintf(stdout, "the same as JSON: %s\n", file)
	return rows, failuresIn(rows, filepath.Join(at.stack.dirs.log, "worker.log"))
}

// explain says where to look, and how to go on.
func (at *site) explain(stdout io.Writer) {
	fmt.Fprintf(stdout, `mail:     %s
reviews:  %s
review another changelist:
  %s --config %s change-commit --wait CHANGELIST
look at one as an operator does:
  %s status CHANGELIST
Ctrl-C stops everything
`, at.settings.inboxURL, at.temporalURL, at.command("starter"), at.config, at.tool)
}

// sameAgain repeats the flags as variables of make.
func sameAgain(opts options) string {
	switch {
	case opts.depot != "":
		return " DEPOT=" + shellQuote(opts.depot)
	case opts.repo != "":
		return " REPO=" + shellQuote(opts.repo)
	}
	return ""
}
