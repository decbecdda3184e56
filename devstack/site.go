package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/namespace"
	"github.com/criticizer/criticizer/secret"
	"github.com/criticizer/criticizer/store"
)

// A few changelists are reviewed when nobody says how many.
const (
	fewChanges   = 5
	fewOfHistory = 8 // of a recorded depot, spread over its history
)

// A site is a Criticizer that runs here for one depot.
type site struct {
	installation
	changes  []submitted // to be reviewed, oldest first
	env      []string    // of worker and starter
	starter  string      // command
	database secret.Value
	temporal namespace.Namespace

	temporalURL, inboxURL string // web pages
}

// startSite starts everything, from Postgres to the worker. The stack owns what
// it starts, also when it fails.
func startSite(ctx context.Context, s *stack, opts options, d depot) (*site, error) {
	in, err := newInstallation(s.dirs.base, d.id)
	if err != nil {
		return nil, err
	}
	at := &site{installation: in, starter: filepath.Join(opts.binDir(), "starter")}
	if err := goBuild(ctx, s.out, "the commands", opts.root, "-o", opts.binDir()+"/", "./worker", "./starter", "./p4/p4sim"); err != nil {
		return nil, err
	}
	config := settings{serverID: d.id}
	for _, step := range []func() error{
		func() error { return at.startDatabase(ctx, s, opts, d) },
		func() error { return at.startTemporal(ctx, s, opts, &config) },
		func() error { return at.startModel(ctx, s, opts, &config) },
		func() (err error) { config.smtpPort, at.inboxURL, err = startInbox(ctx, s, opts, in.mail); return err },
		func() error { return at.openPerforce(ctx, s, opts, d, &config) },
		func() error { return at.startWorker(ctx, s, opts, config) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// startDatabase starts Postgres, with a database for this depot alone: a
// changelist's number is unique only within one depot.
func (at *site) startDatabase(ctx context.Context, s *stack, opts options, d depot) error {
	server, err := startPostgres(ctx, s, pgConfig{
		databaseURL: opts.databaseURL, port: opts.postgresPort, wellKnown: 5432, durable: true,
		globs: pgGlobs, repository: pgRepository, cache: opts.buildDir(),
	})
	if err != nil {
		return err
	}
	name := "criticizer_" + strings.ReplaceAll(d.id, "-", "_")
	if at.database, err = store.CreateDatabase(ctx, secret.New(server), name); err == nil {
		err = store.Migrate(ctx, slog.New(slog.DiscardHandler), at.database)
	}
	if err != nil && opts.databaseURL != "" {
		return fmt.Errorf("%w: correct CRITICIZER_DATABASE_URL, or unset it for a private Postgres", err)
	}
	return err
}

func (at *site) startTemporal(ctx context.Context, s *stack, opts options, config *settings) error {
	command, err := temporalCommand(ctx, opts, s.out)
	if err != nil {
		return err
	}
	server, err := startTemporal(ctx, s, temporalConfig{
		command: command, port: opts.temporalPort, uiPort: opts.temporalUIPort, wellKnown: 7233, wellKnownUI: 8233,
		dbFile: filepath.Join(s.dirs.base, "temporal.db"),
	})
	if err != nil {
		return err
	}
	config.temporalAddress, at.temporalURL = server.address, server.uiURL+"/namespaces/"+temporalNamespace
	if at.temporal, err = dialTemporal(ctx, server.address); err != nil {
		return err
	}
	s.add("temporal client", at.temporal.Close)
	return nil
}

// startModel chooses the model: a real one if the environment names one.
func (at *site) startModel(ctx context.Context, s *stack, opts options, config *settings) (err error) {
	config.model = opts.getenv("CRITICIZER_LLM_MODEL")
	switch {
	case opts.getenv("CRITICIZER_LLM_BASE_URL") != "":
		if config.model == "" {
			return errors.New("CRITICIZER_LLM_BASE_URL is set: name a model of that endpoint in CRITICIZER_LLM_MODEL")
		}
	case opts.getenv("OPENAI_API_KEY") != "" || opts.getenv("OPENAI_API_KEY_FILE") != "":
		config.model = cmp.Or(config.model, "gpt-4.1-mini")
	default:
		config.model = cmp.Or(config.model, "llmsim-1")
		config.modelURL, err = startModel(ctx, s, opts)
		return err
	}
	s.out.say("asking the real model %s: its provider sees the redacted changes, and may charge", config.model)
	return nil
}

// openPerforce makes the p4 command and picks what is to be reviewed.
func (at *site) openPerforce(ctx context.Context, s *stack, opts options, d depot, config *settings) error {
	if d.port != "" {
		config.p4Port, config.p4User = d.port, opts.getenv("P4USER")
		at.p4 = "p4"
	} else {
		config.p4Port, config.p4User = "p4sim:1666", "criticizer"
		if err := at.writeP4(filepath.Join(opts.binDir(), "p4sim"), d.path); err != nil {
			return err
		}
		if err := at.index(ctx, s, d); err != nil {
			return err
		}
	}
	all, err := at.listChanges(ctx, d, opts.changes)
	if err != nil {
		return err
	}
	at.changes = pick(all, d, opts.changes)
	if d.port == "" {
		config.allowed = depotsOf(all)
	}
	return nil
}

// index lets p4sim read its depot, so that no review has to wait for that.
func (at *site) index(ctx context.Context, s *stack, d depot) error {
	return s.out.during("reading "+d.path, func() error {
		cmd := exec.CommandContext(ctx, at.p4, "index")
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, s.out.w
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("read %s: %w\n%s", d.path, err, text.Bytes())
		}
		return nil
	})
}

// listChanges asks p4 for the newest n changelists; of a recorded depot, when
// n is 0, for all.
func (at *site) listChanges(ctx context.Context, d depot, n int) ([]submitted, error) {
	args := []string{"-ztag", "changes", "-s", "submitted"}
	if !d.recorded || n != 0 {
		args = append(args, "-m", strconv.Itoa(cmp.Or(n, fewChanges)))
	}
	cmd := exec.CommandContext(ctx, at.p4, append(args, d.allowed...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the changes: p4 changes: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	list, err := parseChanges(string(text))
	if err == nil && len(list) == 0 {
		err = errors.New("list the changes: there are none to review")
	}
	return list, err
}

func pick(all []submitted, d depot, n int) []submitted {
	if d.recorded && n == 0 {
		return spread(all, fewOfHistory)
	}
	return all
}

// depotsOf allows the whole of every depot the changes are in.
func depotsOf(list []submitted) []string {
	var depots []string
	for _, c := range list {
		if tree := c.depot + "/..."; c.depot != "" && !slices.Contains(depots, tree) {
			depots = append(depots, tree)
		}
	}
	return depots
}

// startWorker writes the configuration and starts the worker on it.
func (at *site) startWorker(ctx context.Context, s *stack, opts options, config settings) error {
	config.inboxURL = at.inboxURL
	if err := at.writeConfig(config); err != nil {
		return err
	}
	secrets, err := at.keptSecrets()
	if err != nil {
		return err
	}
	at.env = append(withoutOurs(os.Environ()), append(secrets, "CRITICIZER_DATABASE_URL="+at.database.Reveal())...)
	proc, err := s.start(program{
		name: "worker", path: filepath.Join(opts.binDir(), "worker"), args: []string{"-config", at.config},
		env: at.env, patience: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	return awaitReady(ctx, proc, time.Minute, func(context.Context) error {
		log, err := os.ReadFile(proc.logPath)
		if err == nil && !bytes.Contains(log, []byte("worker ready")) {
			err = errors.New("it is starting")
		}
		return err
	})
}

// withoutOurs drops the variables that devstack sets itself, however the
// environment gives them.
func withoutOurs(env []string) []string {
	ours := []string{"CRITICIZER_DATABASE_URL", "CRITICIZER_REDACTION_KEY", "CRITICIZER_ARTIFACT_KEYSET"}
	return slices.DeleteFunc(env, func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(ours, strings.TrimSuffix(name, "_FILE"))
	})
}
