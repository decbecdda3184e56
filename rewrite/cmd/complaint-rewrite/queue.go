package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/store/artifact"
)

// open opens the database in a role and checks its schema.
func (c *settings) open(ctx context.Context, role store.Role) (*store.Queue, error) {
	db, err := store.Open(ctx, c.database(), role)
	if err == nil {
		if err = db.CheckSchema(ctx); err != nil {
			db.Close()
		}
	}
	if failure.ClassOf(err) == failure.AuthDenied {
		return nil, cli.Advise(err, "correct user and password in COMPLAINT_REWRITE_DATABASE_URL")
	}
	if err != nil {
		return nil, cli.Advise(err, "check that Postgres is up and that COMPLAINT_REWRITE_DATABASE_URL names it; complaint-rewrite migrate creates the schema")
	}
	return db, nil
}

// onQueue returns a command's function that opens the database for act.
func (a *app) onQueue(act func(cmd *cobra.Command, queue *store.Queue, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.settings("allow_cleartext", "database")
		if err != nil {
			return err
		}
		db, err := c.open(cmd.Context(), store.RoleOperator)
		if err != nil {
			return err
		}
		defer db.Close()
		return act(cmd, db, args)
	}
}

func (a *app) run() *cobra.Command {
	return &cobra.Command{
		Use: "run [WORKER]", Short: "Run a worker now, or all workers, unless they are running",
		Long: `Runs a worker now instead of at its next scheduled time. Temporal drops the start of a
worker that is running. WORKER is rewrite_async, rewrite_batch_submitter or
rewrite_batch_collector.`,
		Example: "  complaint-rewrite run rewrite_async",
		RunE: func(cmd *cobra.Command, args []string) error {
			workers := rewrite.Workers()
			if len(args) > 0 {
				if !slices.Contains(workers, rewrite.Worker(args[0])) {
					return badUsage("worker %q: want one of %v", args[0], workers)
				}
				workers = []rewrite.Worker{rewrite.Worker(args[0])}
			}
			c, err := a.settings("allow_cleartext", "temporal")
			if err != nil {
				return err
			}
			namespace, err := temporal.Dial(cmd.Context(), log.NewStructuredLogger(quiet), c.Temporal)
			if err != nil {
				return cli.Advise(err, "check that the Temporal server is up and that temporal.address names it")
			}
			defer namespace.Close()
			results := map[rewrite.Worker]string{}
			for _, worker := range workers {
				_, started, err := namespace.Trigger(cmd.Context(), string(worker))
				if err != nil {
					return cli.Advise(err, "start complaint-rewrite worker: it creates the schedules")
				}
				results[worker] = "started"
				if !started {
					results[worker] = "not started: a run of it is running"
				}
			}
			return a.print(cmd, results, func(w io.Writer) {
				for _, worker := range workers {
					fmt.Fprintf(w, "%s: %s\n", worker, results[worker])
				}
			})
		},
	}
}

func (a *app) runs() *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "List the runs of the workers, newest first", Example: "  complaint-rewrite runs --limit 100"}
	limit := cmd.Flags().Int("limit", 20, "list at most `N`")
	cmd.RunE = a.onQueue(func(cmd *cobra.Command, queue *store.Queue, _ []string) error {
		runs, err := queue.Runs(cmd.Context(), *limit)
		if err != nil {
			return err
		}
		return a.print(cmd, runs, func(w io.Writer) {
			rows := [][]string{{"STARTED", "WORKER", "TOOK", "LIMIT", "CLAIMED", "SUBMITTED", "SUCCEEDED", "FAILED", "REQUEUED", "RATE", "CAPACITY", "EVENT"}}
			for _, r := range runs {
				took, events := "running", []string{r.Event}
				if r.FinishedAt != nil {
					took = r.FinishedAt.Sub(r.StartedAt).Round(time.Second).String()
				}
				for _, refusal := range r.Refusals {
					events = append(events, refusal.Provider+" refuses: "+refusal.Class)
				}
				rows = append(rows, operator.Row(
					operator.Stamp(r.StartedAt), r.Worker, took, r.MaxJobsPerRun, r.ClaimedCount, r.SubmittedCount, r.SucceededCount, r.FailedCount, r.RequeuedCount,
					r.RateLimitErrors, r.CapacityErrors, strings.TrimSpace(strings.Join(events, " ")),
				))
			}
			writeTable(w, "no runs", rows)
		})
	})
	return cmd
}

func (a *app) jobs() *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "List jobs, newest first", Example: "  complaint-rewrite jobs --status failed"}
	limit := cmd.Flags().Int("limit", 50, "list at most `N`")
	status := cmd.Flags().String("status", "", "only jobs of this `STATUS`: queued, processing (or running), batch_submitted, completed (or succeeded), failed or canceled")
	request := cmd.Flags().String("request", "", "only jobs of the request with this `ID`")
	cmd.RunE = a.onQueue(func(cmd *cobra.Command, queue *store.Queue, _ []string) (err error) {
		var of rewrite.Status
		if *status != "" {
			if of, err = rewrite.ParseStatus(*status); err != nil {
				return badUsage("--status %q: %w", *status, err)
			}
		}
		if *request != "" && uuid.Validate(*request) != nil {
			return badUsage("--request %q: want a UUID", *request)
		}
		jobs, err := queue.Find(cmd.Context(), of, *request, *limit)
		if err != nil {
			return err
		}
		return a.print(cmd, jobs, func(w io.Writer) {
			rows := [][]string{{"JOB", "STATUS", "MODE", "MODEL", "TRIES", "AGE", "NOT BEFORE", "LAST ERROR"}}
			for _, j := range jobs {
				mode, model, lastError := "", "", ""
				if j.Routing != nil {
					mode, model = string(j.Routing.Mode), j.Routing.Model
				}
				if j.LastError != nil {
					lastError = *j.LastError
				}
				tries := fmt.Sprintf("%d/%d", j.AttemptCount, j.MaxAttempts)
				rows = append(rows, operator.Row(j.ID, j.Status, mode, model, tries, operator.Age(time.Since(j.CreatedAt)), operator.StampIf(j.NotBeforeAt), lastError))
			}
			writeTable(w, "no jobs", rows)
			if len(jobs) == *limit {
				fmt.Fprintf(w, "the newest %d; --limit shows more\n", *limit)
			}
		})
	})
	return cmd
}

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB_ID", Short: "Show a job and every change of its status", Args: oneID,
		Example: "  complaint-rewrite show 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10",
		RunE: a.onQueue(func(cmd *cobra.Command, queue *store.Queue, args []string) (err error) {
			var v struct {
				rewrite.Job
				Transitions []db.TransitionsRow `json:"transitions"`
			}
			if v.Job, err = queue.Job(cmd.Context(), args[0]); err != nil {
				return adviseJob(err)
			}
			if v.Transitions, err = queue.Transitions(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.print(cmd, v, func(w io.Writer) {
				fmt.Fprintf(w, "job %s: %s, attempt %d of %d\n", v.ID, v.Status, v.AttemptCount, v.MaxAttempts)
				fmt.Fprintf(w, "request %s, recipient %s\n", v.RequestID, v.RecipientUserID)
				fmt.Fprintf(w, "text: %s, %s, %s to %s\n", v.Surface, v.Strength, v.Languages.From, v.Languages.To)
				if r := v.Routing; r != nil {
					fmt.Fprintf(w, "route: %s %s by %s, prompt %s, policy %s, %s\n", r.Provider, r.Model, r.AdapterKind, r.PromptVersion, r.PolicyVersion, r.Mode)
				}
				if v.NotBeforeAt != nil {
					fmt.Fprintf(w, "not before: %s\n", operator.StampIf(v.NotBeforeAt))
				}
				if v.BatchID != nil {
					fmt.Fprintf(w, "batch: %s\n", *v.BatchID)
				}
				rows := [][]string{{"AT", "STATUS", "TRIES", "ERROR", "RUN", "BY"}}
				for _, t := range v.Transitions {
					rows = append(rows, operator.Row(operator.Stamp(t.At), t.ToStatus, t.AttemptCount, t.Error, t.RunID, t.Login))
				}
				writeTable(w, "no changes", rows)
			})
		}),
	}
}

// reasonUsage describes the flag --reason.
const reasonUsage = "why, and where that is recorded: `TEXT` for the audit log (required)"

func adviseJob(err error) error { return cli.Advise(err, "complaint-rewrite jobs lists the jobs") }

func (a *app) cancel() *cobra.Command {
	return a.repair("cancel", "Cancel a job for good", "canceled", (*store.Queue).Cancel)
}

func (a *app) requeue() *cobra.Command {
	return a.repair("requeue", "Let a job be claimed at once: one that waits for its time, or whose worker is lost (which uses an attempt)",
		"queued: the next run may claim it", (*store.Queue).Requeue)
}

// repair changes the status of one job for a reason.
func (a *app) repair(action, short, done string,
	change func(q *store.Queue, ctx context.Context, jobID, who, reason string) (rewrite.Job, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " JOB_ID", Short: short, Args: oneID,
		Example: fmt.Sprintf(`  complaint-rewrite %s 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10 --reason "T-12: asked by the author"`, action),
	}
	reason := operator.StatementFlag(cmd, "reason", "", reasonUsage)
	cmd.RunE = a.onQueue(func(cmd *cobra.Command, queue *store.Queue, args []string) error {
		if _, err := change(queue, cmd.Context(), args[0], operator.Name(a.getenv), *reason); err != nil {
			return cli.Advise(err, "complaint-rewrite show has the status: a final job is enqueued again under another rewrite_request_id, "+
				"a batch that the provider may have ends with complaint-rewrite batch abandon, and a claimed job without an attempt left fails when its claim is stale")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "job %s is %s\n", args[0], done)
		return nil
	})
	return cmd
}

func (a *app) stats() *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count jobs by status, and list the open batches",
		RunE: a.onQueue(func(cmd *cobra.Command, queue *store.Queue, _ []string) (err error) {
			var figures struct {
				Jobs    []db.StatsRow `json:"jobs"`
				Batches []store.Batch `json:"open_batches"`
			}
			if figures.Jobs, err = queue.Stats(cmd.Context()); err != nil {
				return err
			}
			if figures.Batches, err = queue.OpenBatches(cmd.Context()); err != nil {
				return err
			}
			return a.print(cmd, figures, func(w io.Writer) {
				rows := [][]string{{"STATUS", "MODE", "JOBS", "DEFERRED", "OLDEST"}}
				for _, s := range figures.Jobs {
					rows = append(rows, operator.Row(s.Status, s.ExecutionMode, s.Jobs, s.Deferred, operator.Age(time.Since(s.Oldest))))
				}
				writeTable(w, "no jobs", rows)
				rows = [][]string{{"BATCH", "STATE", "AT PROVIDER", "STATUS THERE", "LAST POLL", "JOBS", "AGE"}}
				for _, b := range figures.Batches {
					rows = append(rows, operator.Row(b.BatchID, b.State, b.ProviderBatchID, b.ProviderStatus, operator.StampIf(b.PolledAt), b.Requests, operator.Age(time.Since(b.CreatedAt))))
				}
				writeTable(w, "no open batches", rows)
			})
		}),
	}
}

func (a *app) batch() *cobra.Command {
	abandon := &cobra.Command{
		Use: "abandon BATCH_ID", Short: "End an open batch; its jobs are queued again or fail, which uses an attempt", Args: oneID,
		Long: `Ends an open batch that its provider does not finish and releases its tokens. Its
open jobs are queued again, or fail if they have no attempt left. Results that the
provider has are lost. The next run of the collector cancels the batch there.`,
		Example: `  complaint-rewrite batch abandon 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10 --reason "T-14: the provider lost it"`,
	}
	reason := operator.StatementFlag(abandon, "reason", "", reasonUsage)
	abandon.RunE = a.onQueue(func(cmd *cobra.Command, queue *store.Queue, args []string) error {
		jobs, err := queue.AbandonBatch(cmd.Context(), args[0], operator.Name(a.getenv), *reason)
		if err != nil {
			return cli.Advise(err, "complaint-rewrite stats lists the open batches")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "batch %s is abandoned: %d jobs left it\n", args[0], jobs)
		return nil
	})
	cancel := &cobra.Command{
		Use: "cancel PROVIDER PROVIDER_BATCH_ID", Short: "Cancel a batch that no row knows at its provider", Args: cobra.ExactArgs(2),
		Long: `Cancels a batch at its provider that the log of the worker names as one without a row.
Another database may know it. End a batch of the queue with abandon.`,
		Example: "  complaint-rewrite batch cancel openai batch_67f0",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.settings()
			if err != nil {
				return err
			}
			rewriter, err := c.rewriter(quiet, "")
			if err != nil {
				return err
			}
			to := rewrite.RoutingDecision{Provider: args[0], AdapterKind: rewrite.OpenAIChat}
			if err := rewriter.Cancel(cmd.Context(), to, args[1]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "batch %s is being canceled at %s\n", args[1], args[0])
			return nil
		},
	}
	cmd := &cobra.Command{Use: "batch", Short: "Abandon a batch, or cancel one that only its provider has"}
	cmd.AddCommand(abandon, cancel)
	return cmd
}

func (a *app) migrate() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Migrate the database schema to this build's version",
		Long: `Migrates the database schema to this build's version and prints the steps. The
login of COMPLAINT_REWRITE_DATABASE_URL must own the database. The command may be run
again, or twice at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings("allow_cleartext", "database")
			if err != nil {
				return err
			}
			if err := store.Schema.Migrate(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), c.database()); err != nil {
				return cli.Advise(err, "check that Postgres is up and that the login of COMPLAINT_REWRITE_DATABASE_URL owns the database")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the schema has this build's version")
			return nil
		},
	}
}

func (a *app) keyset() *cobra.Command {
	return &cobra.Command{
		Use: "keyset [FILE]", Short: "Print a new keyset, or the keyset of FILE with a new primary key",
		Long: `Prints a new keyset for COMPLAINT_REWRITE_KEYSET, or the keyset of FILE with a new primary
key: what older keys have encrypted stays readable. With kek_uri, the keyset is
encrypted by that key. The output is a secret.`,
		Example: "  complaint-rewrite keyset > /etc/complaint-rewrite/keyset",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.settings("kek_uri")
			if err != nil {
				return err
			}
			var made secret.Value
			if len(args) == 0 {
				made, err = artifact.NewKeyset(c.kek())
			} else if made, err = secret.ReadFile("keyset", args[0]); err == nil {
				made, err = artifact.RotateKeyset(made, c.kek())
			}
			if err != nil {
				return cli.Advise(err, "name the file of a keyset that this command has printed")
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Reveal())
			return err
		},
	}
}
