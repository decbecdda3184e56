package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

// rewrites implements starter rewrite.
func rewrites(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("rewrite", env.stdout)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		args = flags.Args()[1:]
	}
	switch flags.Arg(0) {
	case "enqueue":
		return enqueueRewrites(ctx, args, env)
	case "seal":
		return sealRewrite(ctx, args, env)
	case "result":
		return rewriteResult(ctx, args, env)
	}
	return fmt.Errorf("%w: rewrite wants one of enqueue, seal, result: got %q", errUsage, flags.Arg(0))
}

// enqueueRewrites reads a whole file, and enqueues all of it or nothing.
func enqueueRewrites(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("enqueue", env.stdout)
	file := flags.String("file", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() > 0 {
		return fmt.Errorf("%w: enqueue wants -file FILE and no arguments", errUsage)
	}
	lines, err := readLines(*file)
	if err != nil {
		return err
	}
	cfg, err := backendConfig(env)
	if err != nil {
		return err
	}
	seals, err := newSealer(cfg)
	if err != nil {
		return err
	}
	orders := make([]rewrite.Order, len(lines))
	sealed := make([]rewrite.Sealed, len(lines))
	for i, l := range lines {
		orders[i] = l.Order
		if sealed[i], err = seals.seal(ctx, l.message); err != nil {
			return fmt.Errorf("%s, line %d: %w", *file, l.number, err)
		}
	}
	db, err := backendDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	receipts, err := db.Rewrites().Enqueue(ctx, orders, sealed)
	if refused, ok := errors.AsType[*store.OrderError](err); ok {
		return fmt.Errorf("%s, line %d: %w: nothing was enqueued", *file, lines[refused.Index].number, err)
	}
	if err != nil {
		return err
	}
	return printReceipts(env.stdout, receipts, *asJSON)
}

func printReceipts(out io.Writer, receipts []rewrite.Receipt, asJSON bool) error {
	created := 0
	for _, r := range receipts {
		if r.Created {
			created++
		}
		if asJSON {
			if err := json.NewEncoder(out).Encode(r); err != nil {
				return err
			}
		}
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintf(out, "enqueued %d rewrite jobs; %d existed already\n", created, len(receipts)-created)
	return err
}

// sealRewrite seals a message for a backend that enqueues with SQL.
func sealRewrite(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("seal", env.stdout)
	file := flags.String("file", "-", "")
	if err := parse(flags, args); err != nil {
		return err
	}
	body, err := readFile(*file)
	if err != nil {
		return err
	}
	var m message
	if err := strictly(body, &m); err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	if err := m.validate(); err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	cfg, err := backendConfig(env)
	if err != nil {
		return err
	}
	seals, err := newSealer(cfg)
	if err != nil {
		return err
	}
	sealed, err := seals.seal(ctx, m)
	if err != nil {
		return err
	}
	return json.NewEncoder(env.stdout).Encode(sealed)
}

// rewriteResult prints the rewritten text of a job.
func rewriteResult(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("result", env.stdout)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%w: result wants one job id", errUsage)
	}
	cfg, err := backendConfig(env)
	if err != nil {
		return err
	}
	db, err := backendDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	sealed, err := db.Rewrites().Result(ctx, flags.Arg(0))
	if err != nil {
		return err
	}
	seals, err := newSealer(cfg)
	if err != nil {
		return err
	}
	text, err := seals.open(ctx, sealed)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, text)
	return err
}

func backendConfig(env environment) (*config.Config, error) {
	cfg, err := config.Load(env.configPath, env.getenv)
	if err != nil {
		return nil, err
	}
	return cfg, cfg.Check(config.RoleBackend)
}

func backendDatabase(ctx context.Context, cfg *config.Config) (*store.DB, error) {
	return store.Open(ctx, slog.New(slog.DiscardHandler), cfg.Database.URL, store.RoleBackend)
}

// readFile reads a file, or standard input if its name is -.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}
