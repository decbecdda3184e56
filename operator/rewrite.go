package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

func (c *console) rewriteCommand() *cobra.Command {
	return group("rewrite", "Run, list, show, cancel, requeue or count complaint rewrites and their batches",
		`Shows and repairs the queue of complaint rewrites. No command prints a message
or a rewrite: jobs are known by their IDs. docs/rewrite.md has the details.`,
		c.rewriteRunCommand(), c.rewriteRunsCommand(), c.rewriteJobsCommand(), c.rewriteShowCommand(),
		c.rewriteRepairCommand("cancel", "Cancel a job for good", "canceled", store.Rewrites.Cancel),
		c.rewriteRepairCommand("requeue", "Let a job be claimed at once: one that waits for its time, or whose worker is lost (which uses an attempt)",
			"queued: the next run may claim it", store.Rewrites.Requeue),
		c.rewriteStatsCommand(), c.rewriteBatchCommand())
}

func (c *console) rewriteRunCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run [WORKER]", Short: "Run a worker now, or all workers, unless they are running",
		Long:              "Runs a worker now instead of at its next scheduled time. WORKER is one of\n" + alternatives(rewrite.Workers()...) + ".",
		Example:           "  criticizer rewrite run rewrite_async",
		ValidArgsFunction: first(fixed(rewrite.Workers()...)),
		RunE: func(cmd *cobra.Command, args []string) error {
			workers := rewrite.Workers()
			for _, name := range args {
				worker, err := oneOf(workers...)(name)
				if err != nil {
					return badUsage("worker %q: %w", name, err)
				}
				workers = []rewrite.Worker{worker}
			}
			return c.onTemporal(func(ctx context.Context, temporal runs, _ []string) error {
				for _, worker := range workers {
					if err := temporal.TriggerRewrite(ctx, worker); err != nil {
						return advise(err, "start a worker with --stages rewrite: it creates the schedules")
					}
				}
				return c.done("triggered: %s", alternatives(workers...))
			})(cmd, args)
		},
	}
}

// onRewrites opens the database and calls run with the queue.
func (c *console) onRewrites(run func(ctx context.Context, queue store.Rewrites, args []string) error) func(*cobra.Command, []string) error {
	return c.onDatabase(func(ctx context.Context, db *store.DB, args []string) error { return run(ctx, db.Rewrites(), args) })
}

var runTable = table[rewrite.Run]{
	empty:  "no runs",
	header: []string{"STARTED", "WORKER", "TOOK", "LIMIT", "CLAIMED", "SUBMITTED", "SUCCEEDED", "FAILED", "REQUEUED", "RATE", "CAPACITY", "EVENT"},
	cells: func(r rewrite.Run) []any {
		took := "running"
		if r.FinishedAt != nil {
			took = age(r.FinishedAt.Sub(r.StartedAt))
		}
		return []any{stamp(r.StartedAt), r.Worker, took, r.MaxJobsPerRun, r.Claimed, r.Submitted, r.Succeeded, r.Failed, r.Requeued, r.RateLimited, r.Capacity, r.Event}
	},
}

func (c *console) rewriteRunsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "List the runs of the workers, newest first", Example: "  criticizer rewrite runs --limit 100"}
	worker, limit := rewrite.Worker(""), 20
	wordFlag(cmd, &worker, "worker", "only runs of this `WORKER`", rewrite.Workers()...)
	return list(c, cmd, &limit, runTable, func(ctx context.Context, db *store.DB) ([]rewrite.Run, error) {
		return db.Rewrites().Runs(ctx, worker, limit)
	})
}

var jobTable = table[rewrite.Job]{
	empty:  "no rewrite jobs",
	header: []string{"JOB", "STATUS", "MODE", "MODEL", "TRIES", "AGE", "NOT BEFORE", "LAST ERROR"},
	cells: func(j rewrite.Job) []any {
		mode, model, lastError := "", "", ""
		if j.Routing != nil {
			mode, model = string(j.Routing.Mode), j.Routing.Model
		}
		if j.LastError != nil {
			lastError = *j.LastError
		}
		return []any{j.ID, j.Status, mode, model, triesCell(j), age(time.Since(j.CreatedAt)), stampIf(j.NotBeforeAt), lastError}
	},
}

func triesCell(j rewrite.Job) string { return fmt.Sprintf("%d/%d", j.AttemptCount, j.MaxAttempts) }

func (c *console) rewriteJobsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "List jobs, newest first", Example: "  criticizer rewrite jobs --status failed"}
	filter := store.RewriteFilter{Limit: 50}
	var status rewrite.Status
	flagOf(cmd, &status, "status", "only jobs of this `STATUS`: queued, processing (or running), batch_submitted, completed (or succeeded), failed or canceled", rewrite.ParseStatus)
	must(cmd.RegisterFlagCompletionFunc("status", fixed("queued", "processing", "batch_submitted", "completed", "failed", "canceled")))
	flagOf(cmd, &filter.RequestID, "request", "only jobs of the request with this `ID`", parseUUID)
	return list(c, cmd, &filter.Limit, jobTable, func(ctx context.Context, db *store.DB) ([]rewrite.Job, error) {
		if status != "" {
			filter.Statuses = []rewrite.Status{status}
		}
		return db.Rewrites().Find(ctx, filter)
	})
}

// A rewriteView is one job and the changes of its status.
type rewriteView struct {
	rewrite.Job
	Transitions []store.RewriteTransition `json:"transitions"`
}

func (c *console) rewriteShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB_ID", Short: "Show a job and every change of its status",
		Example: "  criticizer rewrite show 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10",
		Args:    oneJob,
		RunE: c.onRewrites(func(ctx context.Context, queue store.Rewrites, args []string) (err error) {
			var v rewriteView
			if v.Job, err = queue.Job(ctx, args[0]); err != nil {
				return adviseRewrite(err)
			}
			if v.Transitions, err = queue.Trail(ctx, args[0]); err != nil {
				return err
			}
			return c.print(v, v.print)
		}),
	}
}

func (v rewriteView) print(w io.Writer) {
	fmt.Fprintf(w, "rewrite job %s: %s, attempt %d of %d\n", v.ID, v.Status, v.AttemptCount, v.MaxAttempts)
	var f fields
	f.add("request", "%s, recipient %s", v.RequestID, v.RecipientUserID)
	f.add("text", "%s, %s, %s to %s", v.Surface, v.Strength, v.Languages.From, v.Languages.To)
	if r := v.Routing; r != nil {
		f.add("route", "%s %s by %s, prompt %s, policy %s, %s", r.Provider, r.Model, r.AdapterKind, r.PromptVersion, r.PolicyVersion, r.Mode)
	}
	f.add("not before", "%s", stampIf(v.NotBeforeAt))
	if v.BatchID != nil {
		f.add("batch", "%s", *v.BatchID)
	}
	writeTable(w, "  ", f)
	writeTable(w, "  ", table[store.RewriteTransition]{header: []string{"AT", "STATUS", "TRIES", "ERROR", "RUN", "BY"}, cells: func(t store.RewriteTransition) []any {
		return []any{stamp(t.At), t.To, t.Attempts, t.Error, t.RunID, t.Login}
	}}.rows(v.Transitions))
}

// oneJob checks that the operand is the ID of a job or a batch.
func oneJob(cmd *cobra.Command, args []string) error {
	if err := cli.Operands(cmd, args); err != nil {
		return err
	}
	if _, err := parseUUID(args[0]); err != nil {
		return badUsage("ID %q: %w", args[0], err)
	}
	return nil
}

func adviseRewrite(err error) error {
	return advise(err, "criticizer rewrite jobs lists the jobs")
}

// rewriteRepairCommand changes the status of one job for a reason.
func (c *console) rewriteRepairCommand(action, short, done string,
	change func(q store.Rewrites, ctx context.Context, jobID, who, reason string) (rewrite.Job, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " JOB_ID", Short: short, Args: oneJob,
		Example: fmt.Sprintf(`  criticizer rewrite %s 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10 --reason "T-12: asked by the author"`, action),
	}
	reason := statementFlag(cmd, "reason", "", "why, and where that is recorded: `TEXT` for the audit log (required)")
	cmd.RunE = c.onRewrites(func(ctx context.Context, queue store.Rewrites, args []string) error {
		if _, err := change(queue, ctx, args[0], c.operator(), *reason); err != nil {
			return explainRefusal(ctx, queue, action, args[0], err)
		}
		return c.done("rewrite job %s is %s", args[0], done)
	})
	return cmd
}

// explainRefusal returns why the status of a job does not allow an action.
func explainRefusal(ctx context.Context, queue store.Rewrites, action, id string, err error) error {
	if failure.ClassOf(err) != failure.WriteConflict {
		return err
	}
	job, lookup := queue.Job(ctx, id)
	switch {
	case lookup != nil:
		return adviseRewrite(lookup)
	case job.Status.Final():
		return advise(fmt.Errorf("%s rewrite job %s: it is %s, which is final", action, id, job.Status),
			"enqueue the message again under a new rewrite_request_id if it is still wanted")
	case job.BatchID != nil:
		return advise(fmt.Errorf("%s rewrite job %s: it is in batch %s, which its provider may have", action, id, *job.BatchID),
			"wait for the collector, cancel the job, or end the batch with criticizer rewrite batch abandon")
	}
	return advise(errors.New(action+" rewrite job "+id+": it has no attempt left"), "it fails when its claim is stale")
}

// rewriteFigures is the output of rewrite stats.
type rewriteFigures struct {
	Jobs    []store.RewriteStats `json:"jobs"`
	Batches []rewrite.Submission `json:"open_batches"`
}

func (c *console) rewriteStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count jobs by status, and list the open batches",
		RunE: c.onRewrites(func(ctx context.Context, queue store.Rewrites, _ []string) (err error) {
			var f rewriteFigures
			if f.Jobs, err = queue.Stats(ctx); err != nil {
				return err
			}
			if f.Batches, err = queue.Batches(ctx, false, mostListed); err != nil {
				return err
			}
			return c.print(f, f.print)
		}),
	}
}

func (f rewriteFigures) print(w io.Writer) {
	if len(f.Jobs) == 0 {
		fmt.Fprintln(w, "no rewrite jobs")
		return
	}
	writeTable(w, "", table[store.RewriteStats]{header: []string{"STATUS", "MODE", "JOBS", "DEFERRED", "OLDEST"}, cells: func(s store.RewriteStats) []any {
		return []any{s.Status, s.Mode, s.Jobs, s.Deferred, age(time.Since(s.Oldest))}
	}}.rows(f.Jobs))
	if len(f.Batches) == 0 {
		fmt.Fprintln(w, "no open batches")
		return
	}
	writeTable(w, "", batchTable.rows(f.Batches))
}

var batchTable = table[rewrite.Submission]{
	empty:  "no batches",
	header: []string{"BATCH", "STATE", "AT PROVIDER", "STATUS THERE", "JOBS", "AGE"},
	cells: func(b rewrite.Submission) []any {
		return []any{b.ID, b.State, b.ProviderID, b.ProviderStatus, b.Requests, age(time.Since(b.CreatedAt))}
	},
}

func (c *console) rewriteBatchCommand() *cobra.Command {
	return group("batch", "List, show or abandon batches at a provider", "Shows the batches of the rewrite queue, and ends one that its provider lost.",
		c.rewriteBatchListCommand(), c.rewriteBatchShowCommand(), c.rewriteBatchAbandonCommand())
}

func (c *console) rewriteBatchListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the open batches, newest first", Example: "  criticizer rewrite batch list --all"}
	all, limit := cmd.Flags().Bool("all", false, "list ended batches, too"), 50
	return list(c, cmd, &limit, batchTable, func(ctx context.Context, db *store.DB) ([]rewrite.Submission, error) {
		return db.Rewrites().Batches(ctx, *all, limit)
	})
}

// A batchView is one batch and its jobs.
type batchView struct {
	rewrite.Submission
	Jobs []rewrite.Job `json:"jobs"`
}

func (c *console) rewriteBatchShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show BATCH_ID", Short: "Show a batch, its times and its jobs", Args: oneJob,
		Example: "  criticizer rewrite batch show 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10",
		RunE: c.onRewrites(func(ctx context.Context, queue store.Rewrites, args []string) (err error) {
			var v batchView
			if v.Submission, err = queue.Batch(ctx, args[0]); err != nil {
				return advise(err, "criticizer rewrite batch list --all lists the batches")
			}
			if v.Jobs, err = queue.BatchJobs(ctx, args[0]); err != nil {
				return err
			}
			return c.print(v, v.print)
		}),
	}
}

func (v batchView) print(w io.Writer) {
	fmt.Fprintf(w, "rewrite batch %s: %s\n", v.ID, v.State)
	var f fields
	f.add("provider", "%s %s, batch %s, %s there", v.Routing.Provider, v.Routing.Model, v.ProviderID, v.ProviderStatus)
	f.add("size", "%d jobs, %d tokens", v.Requests, v.Tokens)
	f.add("created", "%s", stamp(v.CreatedAt))
	f.add("submitted", "%s", stampIf(v.SubmittedAt))
	f.add("last poll", "%s", stampIf(v.PolledAt))
	f.add("ended there", "%s", stampIf(v.FinalAt))
	f.add("cancel asked", "%s", stampIf(v.CancelAskedAt))
	f.add("creation error", "%s", v.CreateError)
	writeTable(w, "  ", f)
	writeTable(w, "  ", table[rewrite.Job]{header: []string{"JOB", "STATUS", "TRIES"}, cells: func(j rewrite.Job) []any {
		return []any{j.ID, j.Status, triesCell(j)}
	}}.rows(v.Jobs))
}

func (c *console) rewriteBatchAbandonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "abandon BATCH_ID", Short: "End an open batch; its jobs are queued again or fail, which uses an attempt", Args: oneJob,
		Long: `Ends an open batch that its provider does not finish and releases its tokens. Its
open jobs are queued again, or fail if they have no attempt left. Results that the
provider has are lost. The next run of the collector cancels the batch there.`,
		Example: `  criticizer rewrite batch abandon 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10 --reason "T-14: the provider lost it"`,
	}
	reason := statementFlag(cmd, "reason", "", "why, and where that is recorded: `TEXT` for the audit log (required)")
	cmd.RunE = c.onRewrites(func(ctx context.Context, queue store.Rewrites, args []string) error {
		jobs, err := queue.AbandonBatch(ctx, args[0], c.operator(), *reason)
		if err != nil {
			return advise(err, "criticizer rewrite batch list lists the open batches")
		}
		return c.done("rewrite batch %s is abandoned: %d jobs left it", args[0], jobs)
	})
	return cmd
}
