package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/provider"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/workflows"
	"github.com/criticizer/criticizer/store/artifact"
)

func (a *app) worker() *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Execute the jobs of the queue",
		Long: `Serves the queue until it receives SIGTERM or Ctrl-C, and creates the schedules of its
runs. It then begins no call and finishes those in flight. It reads the files of its
secrets every 10 seconds, and on SIGHUP.`,
		Example: "  complaint-rewrite worker",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings()
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, cmd.ErrOrStderr())
		},
	}
}

const (
	// stopGrace is how long a stopping worker waits for its calls. Then it cancels them.
	stopGrace = 20 * time.Second
	// reportTimeout is the time between the end of the grace period and the stop of the
	// worker: canceled attempts report to Temporal in it.
	reportTimeout = 4 * time.Second
	flushTimeout  = 2 * time.Second // for the last spans
	// secretsInterval is how often the files of the secrets are read.
	secretsInterval = 10 * time.Second
	concurrency     = 4 // of the async lane, in one worker
)

// serve runs a worker until ctx ends, and then waits for the calls in flight.
func serve(ctx context.Context, c *settings, logTo io.Writer) error {
	runs, err := c.runs()
	if err != nil {
		return err
	}
	standard, err := c.route()
	if err != nil {
		return err
	}
	pipeline, err := c.pipeline()
	if err != nil {
		return err
	}
	scrub := func(s string) string {
		text, err := pipeline.String(s)
		if err != nil {
			return "[withheld: not redactable]"
		}
		return text.String()
	}
	logging := c.Log
	logging.Scrub = scrub
	lg := telemetry.Logger(logTo, logging)
	c.followSecrets(ctx, lg)

	db, err := store.Open(ctx, c.database(), store.RoleWorker)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckSchema(ctx); err != nil {
		return err
	}
	messages, err := c.texts("message", db)
	if err != nil {
		return err
	}
	results, err := c.texts("result", db)
	if err != nil {
		return err
	}
	installation, err := db.Installation(ctx)
	if err != nil {
		return err
	}
	rewriter, err := c.rewriter(lg, installation.ID)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	working := activities.New(lg, activities.Parts{
		Queue: db, Messages: messages, Results: results, Pipeline: pipeline, Provider: rewriter, Standard: standard,
		Name: fmt.Sprintf("%d@%s", os.Getpid(), host),
	}, activities.Config{
		Run: runs, Limits: rewrite.BatchLimits{Requests: rewrite.MaxJobsPerRun, Tokens: c.Batch.MaxEnqueuedTokens},
		Concurrency: concurrency, CallTimeout: c.Timeout,
	})

	where := c.Temporal
	interceptors, flush, err := traces.Start(ctx, lg, "complaint-rewrite", flushTimeout)
	if err != nil {
		return err
	}
	defer flush()
	where.Interceptors = interceptors
	metrics, err := telemetry.NewMetrics(lg)
	if err != nil {
		return err
	}
	metrics.AddSource("postgres", func(ctx context.Context) ([]telemetry.Sample, error) {
		figures, err := db.Figures(ctx)
		samples := make([]telemetry.Sample, len(figures))
		for i, f := range figures {
			samples[i] = telemetry.Sample{Name: f.Name, Value: f.Figure}
			err = cmp.Or(err, json.Unmarshal(f.Labels, &samples[i].Labels))
		}
		return samples, err
	})
	where.Metrics = metrics.Handler()
	namespace, err := temporal.Dial(ctx, log.NewStructuredLogger(lg), where)
	if err != nil {
		return err
	}
	defer namespace.Close()
	for _, name := range rewrite.Workers() {
		err := namespace.Schedule(ctx, runs.Interval(name), false, &client.ScheduleWorkflowAction{
			ID: string(name), Workflow: string(name), TaskQueue: activities.Queue, StaticSummary: "One run of a worker of the rewrite queue",
		})
		if err != nil {
			return err
		}
	}
	w := worker.New(namespace.Client, activities.Queue, worker.Options{
		Interceptors:      []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: scrub, Grace: stopGrace}},
		WorkerStopTimeout: stopGrace + reportTimeout,
	})
	workflows.Register(w)
	w.RegisterActivity(working)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	defer w.Stop()
	if c.Listen != "" {
		stop, err := telemetry.Serve(c.Listen, metrics, func(ctx context.Context) error {
			if _, err := namespace.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
				return errors.New(scrub(fmt.Sprintf("reach Temporal: %v", err)))
			}
			if err := db.CheckSchema(ctx); err != nil {
				return errors.New(scrub(fmt.Sprintf("query the database: %v", err)))
			}
			return nil
		})
		if err != nil {
			return failure.New(failure.ConfigInvalid, err)
		}
		defer stop()
	}
	lg.InfoContext(ctx, "worker ready")
	if err := telemetry.NotifyReady(ctx, os.Getenv("NOTIFY_SOCKET")); err != nil {
		lg.WarnContext(ctx, "systemd not notified: it stops the worker at TimeoutStartSec; correct NotifyAccess= of the unit", "error", err.Error())
	}
	<-ctx.Done()
	lg.InfoContext(ctx, "worker stopping")
	return nil
}

// followSecrets updates the secrets from their files in the background, at once on SIGHUP.
func (c *settings) followSecrets(ctx context.Context, lg *slog.Logger) {
	var followed []secret.Followed
	for _, s := range program.Secrets(c) {
		f := secret.Followed{Name: s.Variable, Value: s.Value}
		switch s.Variable {
		case "COMPLAINT_REWRITE_KEYSET":
			f.Accept = func(keyset secret.Value) error { return artifact.CheckKeyset(keyset, c.kek()) }
		case "COMPLAINT_REWRITE_DATABASE_URL":
			f.Accept = func(url secret.Value) error {
				database := c.database()
				database.URL = url
				return database.Check()
			}
		case "COMPLAINT_REWRITE_REDACTION_KEY":
			f.Accept = func(secret.Value) error {
				return errors.New("batches at the provider have placeholders of the old key: restart the workers when none is open")
			}
		}
		followed = append(followed, f)
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go secret.Follow(ctx, lg, followed, secretsInterval, hangup)
}

func (c *settings) database() postgres.Config {
	return postgres.Config{URL: c.Database.URL, ClearText: c.allowsClearText("database")}
}

func (c *settings) kek() artifact.KEK { return artifact.KEK{URI: c.KEKURI, Token: c.KEKToken} }

// rewriter returns the client of the providers.
func (c *settings) rewriter(lg *slog.Logger, installation string) (*provider.Rewriter, error) {
	pipeline, err := c.pipeline()
	if err != nil {
		return nil, err
	}
	return provider.New(lg, pipeline, provider.Config{
		Providers: c.providers(), Installation: installation, Timeout: c.Timeout, MaxAnswerTokens: c.MaxAnswerTokens,
	})
}

func (c *settings) pipeline() (*redaction.Pipeline, error) {
	rules, err := redaction.LoadRules(c.Redaction.RuleFiles...)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "redaction.rules: %w", err)
	}
	policy := c.Redaction
	policy.Rules = rules
	return redaction.New(policy)
}
