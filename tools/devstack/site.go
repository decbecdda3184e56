package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/store"
)

// A site is a Criticizer that runs here for one depot.
type site struct {
	installation
	opts  options
	depot depot
	stack *stack
	out   *progress

	settings settings
	changes  []submitted // to be reviewed, oldest first
	env      []string    // of worker and starter
	database secret.Value
	temporal temporalns.Namespace

	temporalURL string // web page
}

// startSite starts everything, from Postgres to the worker. The stack owns what
// it starts, also when it fails.
func startSite(ctx context.Context, s *stack, opts options, d depot) (*site, error) {
	in, err := newInstallation(s.dirs.base, d.id)
	if err != nil {
		return nil, err
	}
	at := &site{installation: in, opts: opts, depot: d, stack: s, out: s.out, settings: settings{serverID: d.id}}
	for _, start := range []func(context.Context) error{
		at.buildCommands, at.startDatabase, at.startTemporal, at.startModel, at.startInbox, at.openPerforce, at.startWorker,
	} {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// command is the path of one of our commands.
func (at *site) command(name string) string { return filepath.Join(at.opts.binDir(), name) }

func (at *site) buildCommands(ctx context.Context) error {
	err := goBuild(ctx, at.out, "the commands", at.opts.root, "-o", at.opts.binDir()+"/", "./worker", "./starter", "./p4/p4sim")
	if err != nil {
		return err
	}
	return goBuild(ctx, at.out, "criticizer", at.opts.root, "-o", at.command("criticizer"), "./operator")
}

// startDatabase starts Postgres, with a database for this depot alone: a
// changelist's number is unique only within one depot.
func (at *site) startDatabase(ctx context.Context) error {
	server, err := startPostgres(ctx, at.stack, pgConfig{
		databaseURL: at.opts.databaseURL, port: at.opts.postgresPort, wellKnown: 5432, durable: true,
		globs: pgGlobs, repository: pgRepository, cache: at.opts.buildDir(),
	})
	if err != nil {
		return err
	}
	name := "criticizer_" + strings.ReplaceAll(at.depot.id, "-", "_")
	if at.database, err = store.CreateDatabase(ctx, secret.New(server), name); err == nil {
		err = store.Migrate(ctx, slog.New(slog.DiscardHandler), at.database)
	}
	if err != nil && at.opts.databaseURL != "" {
		return fmt.Errorf("%w: correct CRITICIZER_DATABASE_URL, or unset it for a private Postgres", err)
	}
	return err
}

func (at *site) startTemporal(ctx context.Context) error {
	command, err := temporalCommand(ctx, at.opts, at.out)
	if err != nil {
		return err
	}
	server, err := startTemporal(ctx, at.stack, temporalConfig{
		command: command, port: at.opts.temporalPort, uiPort: at.opts.temporalUIPort, wellKnown: 7233, wellKnownUI: 8233,
	})
	if err != nil {
		return err
	}
	at.settings.temporalAddress, at.temporalURL = server.address, server.uiURL+"/namespaces/"+temporalNamespace
	if at.temporal, err = dialTemporal(ctx, server.address); err != nil {
		return err
	}
	at.stack.add("temporal client", at.temporal.Close)
	return nil
}

// startModel chooses the model: a real one if the environment names one.
func (at *site) startModel(ctx context.Context) (err error) {
	model := at.opts.getenv("CRITICIZER_LLM_MODEL")
	switch {
	case at.opts.getenv("CRITICIZER_LLM_BASE_URL") != "":
		if model == "" {
			return errors.New("CRITICIZER_LLM_BASE_URL is set: name a model of that endpoint in CRITICIZER_LLM_MODEL")
		}
	case at.opts.getenv("OPENAI_API_KEY") != "" || at.opts.getenv("OPENAI_API_KEY_FILE") != "":
		model = cmp.Or(model, "gpt-4.1-mini")
	default:
		at.settings.model = cmp.Or(model, "llmsim-1")
		at.settings.modelURL, err = startModel(ctx, at.stack, at.opts.modelPort)
		return err
	}
	at.settings.model = model
	at.out.say("asking the real model %s: its provider sees the redacted changes, and may charge", model)
	return nil
}

func (at *site) startInbox(ctx context.Context) (err error) {
	at.settings.smtpPort, at.settings.inboxURL, err = startInbox(ctx, at.stack, at.opts.smtpPort, at.opts.inboxPort, at.mail)
	return err
}

// startWorker writes the configuration and starts the worker on it.
func (at *site) startWorker(ctx context.Context) error {
	if err := at.writeConfig(at.settings); err != nil {
		return err
	}
	secrets, err := at.keptSecrets(at.database)
	if err != nil {
		return err
	}
	at.env = append(withoutOurs(os.Environ()), secrets...)
	if err := at.writeTool(at.command("criticizer"), secrets); err != nil {
		return err
	}
	if err := at.applyAllowList(ctx); err != nil {
		return err
	}
	proc, err := at.stack.start(program{
		name: "worker", path: at.command("worker"), args: []string{"--config", at.config}, env: at.env, patience: 20 * time.Second,
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

// applyAllowList puts the allow-list of the configuration in force: a worker
// refuses one that nobody applied.
func (at *site) applyAllowList(ctx context.Context) error {
	cfg, err := config.Load(at.config, at.opts.getenv)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), at.database, store.RoleOperator)
	if err != nil {
		return err
	}
	defer db.Close()
	list := store.AllowList{Allowed: cfg.P4.AllowedPaths, Embargoed: cfg.P4.EmbargoedPaths}
	_, _, err = db.ApplyAllowList(ctx, list, "devstack", "this depot is to be reviewed")
	return err
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
