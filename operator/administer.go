package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

const migrateUsage = `usage: criticizer migrate

Brings the database's schema to this build's version, and says what it did. The
login of CRITICIZER_DATABASE_URL must own the database. Doing it again, or twice
at once, does no harm. Stop no worker for it, unless the notes of the release say
so: docs/upgrade.md has the order of an upgrade.

examples:
  criticizer migrate

Exit status: 0 done, 1 failed, 2 wrong usage.
`

const keysetUsage = `usage: criticizer keyset

Prints a fresh value for CRITICIZER_ARTIFACT_KEYSET. It is a secret: redirect it
into a file that only the workers may read, and name that file in
CRITICIZER_ARTIFACT_KEYSET_FILE.

examples:
  criticizer keyset > /etc/criticizer/secrets/artifact-keyset

Exit status: 0 done, 1 failed, 2 wrong usage.
`

func migrate(ctx context.Context, args []string, c console) error {
	if err := c.noArguments("migrate", migrateUsage, args); err != nil {
		return err
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	steps := &stepPrinter{c: c}
	if err := store.Migrate(ctx, slog.New(steps), cfg.Database.URL); err != nil {
		return advise(err, "check that Postgres is up and that the login of CRITICIZER_DATABASE_URL owns the database")
	}
	if steps.n == 0 {
		fmt.Fprintln(c.stdout, "nothing to do: the schema is that of this build")
	}
	return nil
}

// A stepPrinter prints the migrations that the store logs.
type stepPrinter struct {
	c console
	n int
}

// Enabled implements [slog.Handler].
func (p *stepPrinter) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements [slog.Handler].
func (p *stepPrinter) Handle(_ context.Context, r slog.Record) error {
	p.n++
	fmt.Fprint(p.c.stdout, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(p.c.stdout, " %s=%v", a.Key, a.Value)
		return true
	})
	fmt.Fprintln(p.c.stdout)
	return nil
}

// WithAttrs implements [slog.Handler].
func (p *stepPrinter) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup implements [slog.Handler].
func (p *stepPrinter) WithGroup(string) slog.Handler { return p }

func keyset(_ context.Context, args []string, c console) error {
	if err := c.noArguments("keyset", keysetUsage, args); err != nil {
		return err
	}
	fresh, err := artifact.NewKeyset()
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, fresh.Reveal())
	return nil
}

func (c console) noArguments(name, usage string, args []string) error {
	flags := c.flags(name, usage)
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("%s takes no arguments: got %q", name, flags.Arg(0))
	}
	return nil
}
