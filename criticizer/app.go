package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/store"
)

// An app is the environment of one command line.
type app struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	// progress reports that a command is running, until stop is called; nil reports nothing.
	progress func(w io.Writer, command string) (stop func())

	configPath   string
	json, wide   bool // the format of the output; neither is a table
	stopProgress func()
}

// quiet discards what libraries log: a command reports errors itself.
var quiet = slog.New(slog.DiscardHandler)

// config reads the configuration and checks what the roles need.
func (c *app) config(roles ...settings.Role) (*settings.Config, error) {
	cfg, err := settings.Load(c.configPath, c.getenv)
	if err == nil && len(roles) > 0 {
		err = cfg.Check(roles...)
	}
	if err != nil {
		return nil, advise(err, "for every setting: criticizer help configuration.md")
	}
	return cfg, nil
}

// configWithKey is config for a command that stores nothing: if the redaction key
// is not set, the placeholders are keyed for this run.
func (c *app) configWithKey(roles ...settings.Role) (*settings.Config, error) {
	cfg, err := c.config(roles...)
	if err == nil && !cfg.Redaction.Key.IsSet() {
		cfg.Redaction.Key = secret.New(rand.Text())
	}
	return cfg, err
}

func (c *app) database(ctx context.Context) (*store.DB, *settings.Config, error) {
	cfg, err := c.config(settings.RoleOperator)
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, quiet, cfg.DatabaseConfig(), store.RoleOperator)
	if err != nil {
		return nil, nil, adviseDatabase(cfg, err)
	}
	if err := db.CheckSchema(ctx); err != nil {
		db.Close()
		return nil, nil, adviseDatabase(cfg, err)
	}
	return db, cfg, nil
}

// onDatabase returns a command's function that opens the database for act.
func (c *app) onDatabase(act func(ctx context.Context, db *store.DB, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		db, _, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		return act(cmd.Context(), db, args)
	}
}

// sourceOf names where a secret comes from: its file, or its variable.
func sourceOf(variable string, s secret.Value) string {
	file, _ := s.File()
	return cmp.Or(file, variable)
}

// adviseDatabase adds what to do about a database that cannot be used.
func adviseDatabase(cfg *settings.Config, err error) error {
	url := sourceOf("CRITICIZER_DATABASE_URL", cfg.Database.URL)
	switch failure.ClassOf(err) {
	case failure.AuthDenied:
		return advise(err, "correct user and password in %s", url)
	case failure.PermissionDenied:
		return advise(err, "grant this login the role %s, or name one that has it in %s", store.RoleOperator, url)
	case failure.ConfigInvalid:
		return advise(err, "correct %s if it names the wrong database; to create roles and schema: criticizer migrate", url)
	}
	return advise(err, "check that Postgres is up and that %s names it", url)
}

// onRow returns a command's function that reads the dead letter or delivery whose ID is the
// first operand, and calls act with it and the other operands.
func onRow[T any](c *app, of string, find func(context.Context, *store.DB, int64) (T, error), act func(context.Context, *store.DB, T, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := parseID(of, args[0])
		if err != nil {
			return err
		}
		return c.onDatabase(func(ctx context.Context, db *store.DB, args []string) error {
			row, err := find(ctx, db, id)
			if err != nil {
				return err
			}
			return act(ctx, db, row, args[1:])
		})(cmd, args)
	}
}

func dialTemporal(ctx context.Context, cfg *settings.Config) (runs, error) {
	n, err := temporal.Dial(ctx, log.NewStructuredLogger(quiet), cfg.Temporal)
	if err != nil {
		return runs{}, advise(err, "check that the Temporal server is up and that temporal.address names it")
	}
	return runs{n}, nil
}

func badUsage(format string, args ...any) error {
	return cli.UsageError{Err: fmt.Errorf(format, args...)}
}

func advise(err error, format string, args ...any) error {
	return cli.Advise(err, fmt.Sprintf(format, args...))
}
