package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/review"
)

// defaultPatience is how long a submit may wait for us.
const defaultPatience = 2 * time.Second

// forDisk is the part of the patience that is left for the spool.
const forDisk = 4 // a quarter

// submit starts the review, and then what was spooled earlier as far as the
// time goes. When Temporal cannot take it in time, the request is spooled. Who
// waits for the end of the review is not a submit: there is no hurry then, and
// nothing is spooled.
func submit(ctx context.Context, cfg *config.Config, req review.Request, wait bool, patience time.Duration) (answer, error) {
	if wait {
		return dialAndStart(ctx, cfg, req, true)
	}
	forTemporal := patience - patience/forDisk
	ctx, cancel := context.WithTimeout(ctx, forTemporal)
	defer cancel()
	a, err := dialAndStart(ctx, cfg, req, false)
	if err == nil {
		return a, nil
	}
	// gRPC may know a little before the context does.
	if _, late := errors.AsType[*serviceerror.DeadlineExceeded](err); late || ctx.Err() != nil {
		err = fmt.Errorf("no answer from Temporal at %s (temporal.address) within %s", cfg.Temporal.Address, forTemporal)
	}
	if kept := spoolOf(cfg).put(req); kept != nil {
		return a, fmt.Errorf("%w; the request could not be kept for later either: %w; start it again by hand", err, kept)
	}
	return answer{
		Changelist: req.Changelist, Version: req.Version, Shelved: req.Shelved, WorkflowID: req.Key, Spooled: true, Reason: err.Error(),
	}, nil
}

func dialAndStart(ctx context.Context, cfg *config.Config, req review.Request, wait bool) (answer, error) {
	n, err := dial(ctx, cfg)
	if err != nil {
		return answer{}, err
	}
	defer n.Close()
	a, err := startKnown(ctx, cfg, n, req, wait)
	if err != nil || wait {
		return a, err
	}
	// What this call does not get to, the next one does.
	_, _ = drainInto(ctx, cfg, n)
	return a, nil
}

// startKnown is start in a namespace that may be new: a worker adds what it has
// to know, but the first change may come before the first worker.
func startKnown(ctx context.Context, cfg *config.Config, n temporalns.Namespace, req review.Request, wait bool) (answer, error) {
	begin := func() (answer, error) { return start(ctx, n, req, wait) }
	if req.Shelved {
		begin = func() (answer, error) { return announce(ctx, n, req, cfg.Shelf.Quiet) }
	}
	a, err := begin()
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); !refused {
		return a, err
	}
	if n.RegisterAttributes(ctx) != nil {
		return a, err // a worker may have the right to
	}
	return begin()
}

// lastSpans is how long a submit may wait for its trace to be sent.
const lastSpans = 200 * time.Millisecond

func dial(ctx context.Context, cfg *config.Config) (temporalns.Namespace, error) {
	interceptors, flush, err := traces.Start(ctx, slog.New(slog.DiscardHandler), "criticizer-starter", lastSpans)
	if err != nil {
		return temporalns.Namespace{}, err
	}
	return temporalns.Dial(ctx, quiet{}, temporalns.Config{
		Address:      cfg.Temporal.Address,
		Name:         cfg.Temporal.Namespace,
		TLS:          cfg.Temporal.TLS,
		APIKey:       cfg.Temporal.APIKey,
		Interceptors: interceptors,
		OnClose:      flush,
	})
}

func spoolOf(cfg *config.Config) spool {
	return spool{dir: cfg.Starter.SpoolDir, limit: cfg.Starter.SpoolLimit}
}

func drainInto(ctx context.Context, cfg *config.Config, n temporalns.Namespace) (int, error) {
	return spoolOf(cfg).drain(ctx, func(ctx context.Context, req review.Request) error {
		_, err := startKnown(ctx, cfg, n, req, false)
		return err
	})
}

// drain starts all that is spooled, and says how much that was.
func drain(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("drain", env.stdout)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() != 0 {
		return fmt.Errorf("%w: drain wants no arguments, got %d", errUsage, flags.NArg())
	}
	defer cli.Progress(env.stderr, "starter drain")()
	cfg, err := loadConfig(env)
	if err != nil {
		return err
	}
	n, err := dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer n.Close()
	started, err := drainInto(ctx, cfg, n)
	_, printed := fmt.Fprintf(env.stdout, "started %d spooled reviews\n", started)
	return errors.Join(err, printed)
}

// asTrigger does a command for a submitter who waits for it. That must not take
// long, not even when the disk hangs, nor fail: Perforce would show an error
// about a change that is long submitted. So it says at most one line.
func asTrigger(stdout io.Writer, command func() error) {
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(stdout, "criticizer: no review was started: %s\n", first)
		}
	case <-time.After(defaultPatience):
		fmt.Fprintf(stdout, "criticizer: no review was started within %v\n", defaultPatience)
	}
}
