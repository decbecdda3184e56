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

// reportUnserved writes to w which task queues no worker has polled in the last minutes,
// until stop is called: without a worker a review waits for ever.
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
			if queues := unserved(ctx, n); len(queues) > 0 {
				fmt.Fprintf(w, "starter change-commit: no worker serves %s: start one (worker --stages)\n", strings.Join(queues, ", "))
			}
		}
	}()
	return func() { cancel(); <-done }
}

// unserved returns the task queues of a review that no worker serves, as far as Temporal
// answers.
func unserved(ctx context.Context, n temporalns.Namespace) (queues []string) {
	for _, queue := range []string{activities.QueueBookkeeping, activities.QueueFetch, activities.QueueRedact, activities.QueueLLM, activities.QueueNotify} {
		if served, err := n.Served(ctx, queue); err == nil && !served {
			queues = append(queues, queue)
		}
	}
	return queues
}
