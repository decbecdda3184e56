package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// errFailedReviews means that the stack works but some reviews failed.
var errFailedReviews = errors.New("reviews failed")

// reviewAndShow reviews the changelists, and prints the list of the reviews and the report
// with the most findings, as it was mailed. It returns errFailedReviews if some reviews failed.
func (e *environment) reviewAndShow(ctx context.Context, stdout io.Writer) error {
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), postgres.Config{URL: e.database}, "")
	if err != nil {
		return err
	}
	defer db.Close()
	reviewAll := e.reviewAll
	if e.depot.sample {
		reviewAll = e.reviewSample
	}
	waits, err := e.reportWaits(ctx, db)
	if err != nil {
		return err
	}
	err = reviewAll(ctx, db, e.changes)
	waits()
	if err != nil {
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
	if len(found) > 0 { // what the mail of the review with the most findings says
		most := slices.MaxFunc(found, func(a, b store.RecentReview) int { return a.Findings - b.Findings })
		text, err := e.criticizer(ctx, "review", "show", most.Changelist.String())
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\n$ criticizer review show %d\n%s\n", most.Changelist, text)
	}
	failed := slices.DeleteFunc(slices.Clone(found), func(r store.RecentReview) bool { return r.State == review.JobSucceeded })
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d %w: see the list of reviews, and %s", len(failed), len(found), errFailedReviews, filepath.Join(e.stack.base, "log", "worker.log"))
	}
	return nil
}

// reportWaits prints every few seconds why a review waits, until stop is called.
func (e *environment) reportWaits(ctx context.Context, db *store.DB) (stop func(), err error) {
	const interval = 10 * time.Second
	server, err := temporal.Dial(ctx, log.NewStructuredLogger(slog.New(slog.DiscardHandler)), temporal.Config{Address: e.settings.temporalAddress, Name: temporalNamespace})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
			if why := whyWaiting(ctx, db, server); why != "" {
				e.out.detail("%s", why)
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}

// whyWaiting returns the failure of the last attempt of an unfinished review, empty if
// none has failed.
func whyWaiting(ctx context.Context, db *store.DB, server temporal.Namespace) string {
	unfinished, err := db.RecentReviews(ctx, store.ReviewFilter{State: review.JobInProgress, Max: allChanges})
	if err != nil {
		return "" // the reviews go on
	}
	for _, r := range unfinished {
		described, err := server.DescribeWorkflow(ctx, r.WorkflowID, "")
		if err != nil {
			continue
		}
		for _, a := range described.RawResponse.GetPendingActivities() {
			if last := a.GetLastFailure(); last != nil {
				return fmt.Sprintf("changelist %d waits in stage %s, attempt %d: %s: %s",
					r.Changelist, r.Stage, a.GetAttempt(), last.GetApplicationFailureInfo().GetType(), last.GetMessage())
			}
		}
	}
	return ""
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
	_, err := run(ctx, cmd)
	return err
}

// criticizer runs a command of an operator and returns what it prints.
func (e *environment) criticizer(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.tool, args...)
	cmd.Env = e.env
	return run(ctx, cmd)
}
