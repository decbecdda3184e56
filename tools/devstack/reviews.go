package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/review"
)

// errFailedReviews means that the stack works but some reviews failed.
var errFailedReviews = errors.New("reviews failed")

// A shownReview is a review as criticizer status --json prints it.
type shownReview struct {
	review.Job
	Run struct {
		Activities []struct {
			Name, State string
			Attempt     int
			Class       string `json:"error_class"`
			Error       string
		}
	}
}

// reviewAndShow reviews the changelists, and prints the list of the reviews and the report
// with the most findings, as it was mailed; of the sample also one with masked secrets. It
// returns errFailedReviews if some reviews failed.
func (e *environment) reviewAndShow(ctx context.Context, stdout io.Writer) error {
	reviewAll := e.reviewAll
	if e.depot.sample {
		reviewAll = e.reviewSample
	}
	if err := reviewAll(ctx, e.changes); err != nil {
		return err
	}
	list, err := e.criticizer(ctx, "review", "list", "--limit", fmt.Sprint(len(e.changes)+2)) // more than there are, so that it is complete
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n$ criticizer review list\n%s", list)
	var most shownReview
	failed := 0
	for _, c := range e.changes {
		for _, r := range e.reviews(ctx, c.changelist) {
			if r.Findings > most.Findings {
				most = r
			}
			if r.State != review.JobSucceeded {
				failed++
			}
		}
	}
	var shown []review.Changelist
	if most.Findings > 0 {
		shown = append(shown, most.Changelist)
	}
	if e.depot.sample {
		shown = append(shown, sampleSecrets)
	}
	for _, cl := range shown {
		text, err := e.criticizer(ctx, "review", "show", cl.String())
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\n$ criticizer review show %d\n%s\n", cl, text)
	}
	if failed > 0 {
		return fmt.Errorf("%d %w: see the list of reviews, and %s", failed, errFailedReviews, filepath.Join(e.stack.base, "log", "worker.log"))
	}
	return nil
}

// reviewAll reviews the changelists, several at a time.
func (e *environment) reviewAll(ctx context.Context, changes []submitted) error {
	return e.out.during(fmt.Sprintf("reviewing %d changelists", len(changes)), func() error {
		const atOnce = 16
		reviews, ctx := errgroup.WithContext(ctx)
		reviews.SetLimit(atOnce)
		for _, c := range changes {
			reviews.Go(func() error {
				_, err := e.review(ctx, c.changelist)
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
// and returns its state. Meanwhile it prints every few seconds why the review waits, if an
// attempt has failed. A failed review is not an error.
func (e *environment) review(ctx context.Context, cl review.Changelist) (review.JobState, error) {
	const interval = 10 * time.Second
	ended := make(chan error, 1)
	go func() { ended <- e.starter(ctx, "change-commit", "--wait", cl.String()) }()
	for {
		select {
		case failed := <-ended:
			for _, r := range slices.Backward(e.reviews(ctx, cl)) {
				if !r.Shelved && r.State != review.JobInProgress {
					return r.State, nil
				}
			}
			return "", cmp.Or(context.Cause(ctx), failed, fmt.Errorf("the review of changelist %d has not ended", cl))
		case <-time.After(interval):
		}
		for _, r := range e.reviews(ctx, cl) {
			for _, a := range r.Run.Activities {
				if a.Error != "" {
					e.out.detail("changelist %d waits for %s, attempt %d: %s: %s", cl, a.Name, a.Attempt, a.Class, a.Error)
				}
			}
		}
	}
}

// reviews returns the reviews of a changelist, as far as the database answers.
func (e *environment) reviews(ctx context.Context, cl review.Changelist) (shown []shownReview) {
	text, err := e.criticizer(ctx, "status", "--json", cl.String())
	if err == nil {
		_ = json.Unmarshal([]byte(text), &shown)
	}
	return shown
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
