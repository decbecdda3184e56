package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"unicode"

	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/store"
)

// A console is what the outside gives a command besides its arguments.
type console struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	configPath     string
	// onWork begins to tell that a command is at work; nil tells nothing.
	onWork func(w io.Writer, command string) (stop func())
}

// config reads the configuration and checks what operators need of it.
func (c console) config() (*config.Config, error) {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err == nil {
		err = cfg.Check(config.RoleOperator)
	}
	if err != nil {
		return nil, advise(err, "docs/configuration.md describes every field")
	}
	return cfg, nil
}

// database opens the database as an operator.
func (c console) database(ctx context.Context) (*store.DB, *config.Config, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), cfg.Database.URL, store.RoleOperator)
	if err != nil {
		return nil, nil, adviseDatabase(err)
	}
	if err := db.CheckSchema(ctx); err != nil {
		db.Close()
		return nil, nil, adviseDatabase(err)
	}
	return db, cfg, nil
}

// adviceLogin is for a database that answers, and refuses.
const adviceLogin = "correct user and password in CRITICIZER_DATABASE_URL, or in the file of CRITICIZER_DATABASE_URL_FILE"

func adviseDatabase(err error) error {
	if failure.ClassOf(err) == failure.AuthDenied {
		return advise(err, adviceLogin)
	}
	return advise(err, "check that Postgres is up and that CRITICIZER_DATABASE_URL names it; criticizer migrate makes the schema")
}

// runs reaches Temporal.
func (c console) runs(ctx context.Context, cfg *config.Config) (runs, error) {
	n, err := temporalns.Dial(ctx, log.NewStructuredLogger(slog.New(slog.DiscardHandler)), wiring.Namespace(cfg))
	if err != nil {
		return runs{}, advise(err, "check that the Temporal server is up and that temporal.address names it")
	}
	return runs{n, cfg.Temporal.Namespace}, nil
}

// operator names who is at the console, as well as a console can know. Who
// signed in to the database is in the audit log beside it.
func (c console) operator() string {
	name := c.getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return cmp.Or(name, "unknown") + "@" + cmp.Or(host, "unknown")
}

// maxStatement bounds evidence and notes. They go to places that are kept
// short; the long story belongs into the ticket.
const maxStatement = 1000

// statement returns what an operator states, on one line. It refuses what must
// not enter Temporal's history or the audit log.
func statement(flagName, text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	pipeline, err := redaction.New(redaction.Config{Key: secret.New(rand.Text())})
	if err != nil {
		return "", err
	}
	redacted, err := pipeline.String(text)
	switch {
	case text == "":
		return "", advise(fmt.Errorf("-%s is empty", flagName), "say what was done and where it is recorded, such as -%s \"INC-42: key renewed\"", flagName)
	case len(text) > maxStatement:
		return "", advise(fmt.Errorf("-%s has %d bytes, more than %d", flagName, len(text), maxStatement), "name the ticket and put the story there")
	case err != nil || redacted.String() != text:
		return "", advise(fmt.Errorf("-%s holds what looks like a secret", flagName), "take it out: this text is kept in Temporal's history and in the audit log")
	}
	return text, nil
}

// printJSON prints v as indented JSON.
func (c console) printJSON(v any) error {
	encoder := json.NewEncoder(c.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// printable keeps what came from outside from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
