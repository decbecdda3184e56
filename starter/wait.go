package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// startAndWait starts the review, waits for its end, and writes to standard error what it waits
// for.
func (a *app) startAndWait(cmd *cobra.Command, cfg *trigger.Config, req review.Request, flags submitFlags) error {
	if !flags.json {
		defer cli.Progress(cmd.ErrOrStderr(), cmd.CommandPath())()
	}
	n, err := connect(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	defer n.Close()
	stop := reportWaits(cmd.Context(), n, req.Key, cmd.ErrOrStderr())
	known, err := startReview(cmd.Context(), cfg, n, req, true)
	stop()
	if err != nil && !isTaken(err) {
		return err
	}
	return a.print(cmd, known, flags.json, err)
}

// How long reportWaits waits before each look.
const (
	firstLook = 3 * time.Second
	nextLook  = 30 * time.Second
)

// reportWaits writes to w what a review waits for, until stop is called: stages that no worker has
// served in the last minutes, and each new failure with the time of the next attempt.
func reportWaits(ctx context.Context, n temporal.Namespace, key string, w io.Writer) (stop func()) {
	reported := map[string]bool{}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := firstLook; ; wait = nextLook {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if stages := strings.Join(unserved(ctx, n), ","); stages != "" {
				fmt.Fprintf(w, programName+" change-commit: no worker serves %s: the review waits until one starts with --roles %[1]s, or until its circuit breaker closes\n", stages)
			}
			described, err := n.DescribeWorkflow(ctx, key, "")
			if err != nil {
				continue
			}
			for _, p := range n.PendingOf(ctx, described.RawResponse) {
				if text := p.String(); (p.Error != "" || p.Stuck != "") && !reported[text] {
					reported[text] = true
					fmt.Fprintf(w, programName+" change-commit: %s\n", text)
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// unserved returns the stages of a review that no worker serves, as far as Temporal
// answers.
func unserved(ctx context.Context, n temporal.Namespace) (stages []string) {
	for _, queue := range contract.ReviewQueues() {
		if state, err := n.QueueState(ctx, queue, false); err == nil && !state.Served {
			stages = append(stages, contract.StageOf(queue))
		}
	}
	return stages
}
