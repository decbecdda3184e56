package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporalns"
)

// How long reportUnserved waits before each look.
const (
	firstLook = 3 * time.Second
	nextLook  = 30 * time.Second
)

// reportUnserved writes to w which stages of a review no worker has served in the last
// minutes, until stop is called: without a worker a review waits for ever.
func reportUnserved(ctx context.Context, n temporalns.Namespace, w io.Writer) (stop func()) {
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
				fmt.Fprintf(w, "starter change-commit: no worker serves the stages %s: the review waits until one starts with --stages %[1]s\n", stages)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// unserved returns the stages of a review that no worker serves, as far as Temporal
// answers.
func unserved(ctx context.Context, n temporalns.Namespace) (stages []string) {
	for _, stage := range []string{"workflows", "fetch", "redact", "llm", "notify"} {
		if served, err := n.Served(ctx, activities.StageQueues[stage]); err == nil && !served {
			stages = append(stages, stage)
		}
	}
	return stages
}
