package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// errFailedReviews means that the stack works but some reviews failed.
var errFailedReviews = errors.New("reviews failed")

// reviewAndShow reviews the changelists, and prints the list of the reviews and the mail
// with the most findings. It returns errFailedReviews if some reviews failed.
func (e *environment) reviewAndShow(ctx context.Context, stdout io.Writer) error {
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), store.Config{URL: e.database}, "")
	if err != nil {
		return err
	}
	defer db.Close()
	reviewAll := e.reviewAll
	if e.depot.sample {
		reviewAll = e.reviewSample
	}
	if err := reviewAll(ctx, db, e.changes); err != nil {
		return err
	}
	limit := len(e.changes) + 1 // a shelf
	found, err := db.RecentReviews(ctx, store.ReviewFilter{Max: limit})
	if err != nil {
		return err
	}
	list, err := e.criticizer(ctx, "review", "list", "--limit", fmt.Sprint(limit+1)) // more than there are, so that it is complete
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n$ criticizer review list\n%s", list)
	if err := e.showMail(ctx, db, stdout, found); err != nil {
		return err
	}
	return failuresIn(found, filepath.Join(e.stack.base, "log", "worker.log"))
}

func failuresIn(found []store.RecentReview, log string) error {
	n := 0
	for _, r := range found {
		if r.State != review.JobSucceeded {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %w: see the list of reviews, and %s", n, len(found), errFailedReviews, log)
}

// reviewAll reviews the changelists, several at a time.
func (e *environment) reviewAll(ctx context.Context, db *store.DB, changes []submitted) error {
	return e.out.during(fmt.Sprintf("reviewing %d changelists", len(changes)), func() error {
		const atOnce = 16
		reviews, ctx := errgroup.WithContext(ctx)
		reviews.SetLimit(atOnce)
		for _, c := range changes {
			reviews.Go(func() error {
				_, err := e.review(ctx, db, c.changelist)
				if err == nil {
					e.out.detail("reviewed changelist %d", c.changelist)
				}
				return err
			})
		}
		return reviews.Wait()
	})
}

// review starts the review of a changelist, unless an earlier run has, waits for its end
// and returns its job. A failed review is not an error.
func (e *environment) review(ctx context.Context, db *store.DB, cl review.Changelist) (review.Job, error) {
	failed := e.starter(ctx, "change-commit", "--wait", cl.String())
	found, err := db.Reviews(ctx, cl)
	if err != nil {
		return review.Job{}, cmp.Or(context.Cause(ctx), err)
	}
	for _, r := range slices.Backward(found) {
		if !r.Shelved && r.State != review.JobInProgress {
			return r.Job, nil
		}
	}
	return review.Job{}, cmp.Or(failed, fmt.Errorf("the review of changelist %d has not ended", cl))
}

// starter runs the starter as a trigger does.
func (e *environment) starter(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, e.command("starter"), append([]string{"--config", e.config}, args...)...)
	cmd.Env = e.env
	return e.run(ctx, cmd, io.Discard)
}

// criticizer runs a command of an operator and returns what it prints.
func (e *environment) criticizer(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.tool, args...)
	cmd.Env = os.Environ()
	var stdout bytes.Buffer
	err := e.run(ctx, cmd, &stdout)
	return stdout.String(), err
}

// run runs cmd. The error has what it wrote to standard error.
func (e *environment) run(ctx context.Context, cmd *exec.Cmd, stdout io.Writer) error {
	interruptible(cmd)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("run %s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
