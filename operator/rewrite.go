package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/rewrite"
)

const rewriteUsage = `usage: criticizer rewrite run [WORKER]
       criticizer rewrite runs [-worker WORKER] [-limit N] [-json]
       criticizer rewrite jobs [-status STATUS] [-request ID] [-limit N] [-json]
       criticizer rewrite show JOB_ID [-json]
       criticizer rewrite cancel JOB_ID -reason TEXT
       criticizer rewrite requeue JOB_ID -reason TEXT
       criticizer rewrite stats [-json]

Looks at the queue of complaint rewrites and repairs it. No command shows a
message or a rewrite: jobs are known by their ids.

  run      have a worker run now instead of at its next time, unless it runs; all
           workers if none is named
  runs     list runs, the newest first: what each claimed, finished and requeued
  jobs     list jobs, the newest first
  show     show one job and every change of its status
  cancel   end a job for good
  requeue  let a job be claimed at once: one that waits for its time, or one whose
           worker is known to be lost, which counts as an attempt
  stats    count jobs by status, and list the batches at the providers

WORKER is rewrite_batch_submitter, rewrite_batch_collector or rewrite_async.
STATUS is queued, processing, batch_submitted, completed, failed or canceled;
running and succeeded are read as processing and completed.
docs/rewrite.md says more.

flags:
  -worker WORKER  runs of this worker only
  -status STATUS  jobs of this status only
  -request ID     the jobs of one request
  -limit N        at most so many (default 20 runs, 50 jobs)
  -reason TEXT    why, and where that is recorded; it goes into the audit log
  -json           print JSON

examples:
  criticizer rewrite run rewrite_async
  criticizer rewrite jobs -status failed
  criticizer rewrite show 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10
  criticizer rewrite cancel 6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10 -reason "T-12: withdrawn"
  criticizer rewrite stats -json

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// rewrites implements criticizer rewrite.
func rewrites(ctx context.Context, args []string, c console) error {
	flags := c.flags("rewrite", rewriteUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	actions := map[string]command{
		"run": runRewrites, "runs": listRewriteRuns, "jobs": listRewriteJobs, "show": showRewriteJob,
		"cancel": cancelRewriteJob, "requeue": requeueRewriteJob, "stats": rewriteStats,
	}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return notOne("rewrite", flags.Arg(0), "run", "runs", "jobs", "show", "cancel", "requeue", "stats")
	}
	return action(ctx, flags.Args()[1:], c)
}

// runRewrites is the admin trigger (queue 5).
func runRewrites(ctx context.Context, args []string, c console) error {
	flags := c.flags("run", rewriteUsage)
	names, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	workers := rewrite.Workers()
	if len(names) > 0 {
		workers = nil
	}
	for _, name := range names {
		worker, err := workerNamed(name)
		if err != nil {
			return err
		}
		workers = append(workers, worker)
	}
	temporal, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	for _, worker := range workers {
		if err := temporal.TriggerRewrite(ctx, worker); err != nil {
			return advise(err, "start a worker with --stages rewrite: it makes the schedules")
		}
		fmt.Fprintf(c.stdout, "%s is told to run\n", worker)
	}
	return nil
}

func workerNamed(name string) (rewrite.Worker, error) {
	worker := rewrite.Worker(name)
	if !slices.Contains(rewrite.Workers(), worker) {
		return "", badUsage("there is no worker %q: want %s", name, oneOf(rewrite.Workers()...))
	}
	return worker, nil
}

// mostListed bounds a listing.
const mostListed = 10_000

func checkLimit(n int) error {
	if n < 1 || n > mostListed {
		return badUsage("-limit is %d: want 1 to %d", n, mostListed)
	}
	return nil
}

func listRewriteRuns(ctx context.Context, args []string, c console) error {
	flags := c.flags("runs", rewriteUsage)
	name := flags.String("worker", "", "")
	limit := flags.Int("limit", 20, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("runs takes flags only: got %q", flags.Arg(0))
	}
	if err := checkLimit(*limit); err != nil {
		return err
	}
	worker := rewrite.Worker("")
	if *name != "" {
		var err error
		if worker, err = workerNamed(*name); err != nil {
			return err
		}
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	runs, err := db.Rewrites().Runs(ctx, worker, *limit)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(runs)
	}
	if len(runs) == 0 {
		fmt.Fprintln(c.stdout, "no runs")
		return nil
	}
	table(c.stdout, "", rewriteRunTable(runs))
	return nil
}

func rewriteRunTable(runs []rewrite.Run) [][]string {
	rows := [][]string{{"STARTED", "WORKER", "TOOK", "LIMIT", "CLAIMED", "SUBMITTED", "SUCCEEDED", "FAILED", "REQUEUED", "RATE", "CAPACITY", "EVENT"}}
	for _, r := range runs {
		took := "running"
		if r.FinishedAt != nil {
			took = age(r.FinishedAt.Sub(r.StartedAt))
		}
		rows = append(rows, []string{
			stamp(r.StartedAt), string(r.Worker), took, fmt.Sprint(r.MaxJobsPerRun), fmt.Sprint(r.Claimed), fmt.Sprint(r.Submitted),
			fmt.Sprint(r.Succeeded), fmt.Sprint(r.Failed), fmt.Sprint(r.Requeued), fmt.Sprint(r.RateLimited), fmt.Sprint(r.Capacity), r.Event,
		})
	}
	return rows
}
