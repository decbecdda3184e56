package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
)

// An environment is a running Criticizer for one depot.
type environment struct {
	installation
	opts  options
	depot depot
	stack *stack
	out   *progress

	changes  []submitted // to be reviewed, oldest first
	env      []string    // of the worker and the starter
	database secret.Value

	temporalCommand func() (string, error)
	temporalURL     string // web page
	inboxURL        string // web page
}

// startEnvironment starts everything, from Postgres to the worker. The stack owns
// what was started, even if an error is returned.
func startEnvironment(ctx context.Context, s *stack, opts options, d depot) (*environment, error) {
	in, err := newInstallation(s.base, d.id)
	if err != nil {
		return nil, err
	}
	e := &environment{installation: in, opts: opts, depot: d, stack: s, out: s.out}
	if err := e.checkModel(ctx); err != nil {
		return nil, err
	}
	e.temporalCommand = obtainTemporal(ctx, s, opts)
	for _, start := range []func(context.Context) error{
		e.buildCommands, e.startDatabase, e.startTemporal, e.startSimulatedModel, e.startInbox, e.openPerforce, e.startWorker,
	} {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// command returns the path of one of our commands.
func (e *environment) command(name string) string { return filepath.Join(e.opts.binDir(), name) }

func (e *environment) buildCommands(ctx context.Context) error {
	return goBuild(ctx, e.out, "the commands", e.opts.root, "-o", e.opts.binDir()+"/", "./worker", "./starter", "./p4/p4sim", "./criticizer")
}

// startDatabase starts Postgres and creates a database for this depot: changelist
// numbers are unique only within one depot.
func (e *environment) startDatabase(ctx context.Context) error {
	server, err := startPostgres(ctx, e.stack, e.opts)
	if err != nil {
		return err
	}
	name := "criticizer_" + strings.ReplaceAll(e.depot.id, "-", "_")
	if e.database, err = postgres.CreateDatabase(ctx, secret.New(server), name); err == nil {
		err = store.Schema().Migrate(ctx, slog.New(slog.DiscardHandler), postgres.Config{URL: e.database})
	}
	switch {
	case err == nil:
		return nil
	case e.opts.databaseURL != "":
		return fmt.Errorf("%w: correct CRITICIZER_DATABASE_URL, or unset it for a private Postgres", err)
	}
	return fmt.Errorf("%w: make clean removes the data of earlier runs", err)
}

func (e *environment) startTemporal(ctx context.Context) error {
	server, err := startTemporal(ctx, e.stack, e.opts, e.temporalCommand)
	if err != nil {
		return err
	}
	e.settings["temporal"] = map[string]any{"address": server.address, "namespace": temporalNamespace, "ui_url": server.uiURL}
	e.temporalURL = server.uiURL + "/namespaces/" + temporalNamespace
	return nil
}

// startWorker writes the configuration, makes the secrets that an earlier run has not made,
// and starts the worker.
func (e *environment) startWorker(ctx context.Context) error {
	if err := e.writeConfig(); err != nil {
		return err
	}
	if err := os.WriteFile(e.databaseURL, []byte(e.database.Reveal()), 0o600); err != nil {
		return fmt.Errorf("write the address of the database: %w", err)
	}
	create := exec.CommandContext(ctx, e.command("criticizer"), "--config", e.config, "keyset", "create", e.dir)
	create.Env = withoutOurs(os.Environ()) // without the names of files that do not exist
	if _, err := run(ctx, create); err != nil {
		return err
	}
	e.env = append(withoutOurs(os.Environ()), e.secretFiles()...)
	if err := e.writeTool(e.command("criticizer"), e.secretFiles()); err != nil {
		return err
	}
	// A worker does not start with an allow list that was not applied.
	if _, err := e.criticizer(ctx, "allowlist", "apply", "--reason", "set up by devstack"); err != nil {
		return err
	}
	cmd := exec.Command(e.command("worker"), "--config", e.config)
	cmd.Env = e.env
	proc, err := e.stack.run("worker", cmd)
	if err != nil {
		return err
	}
	return proc.awaitLog(ctx, time.Minute, "worker ready")
}

// withoutOurs removes the variables that devstack sets itself, with or without
// the suffix _FILE.
func withoutOurs(env []string) []string {
	ours := []string{"CRITICIZER_DATABASE_URL", "CRITICIZER_REDACTION_KEY", "CRITICIZER_EVIDENCE_KEY"}
	return slices.DeleteFunc(env, func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		name = strings.TrimSuffix(name, "_FILE")
		return slices.Contains(ours, name) || strings.HasPrefix(name, "CRITICIZER_") && strings.HasSuffix(name, "_KEYSET")
	})
}
