package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// Pending returns how many jobs a run of this mode could claim, route or recover
// (rewrite 5).
func (q *Queue) Pending(ctx context.Context, mode rewrite.ExecutionMode, claimTimeout time.Duration) (int, error) {
	pending, err := q.q.PendingJobs(ctx, db.PendingJobsParams{Mode: string(mode), ClaimTimeout: claimTimeout})
	return pending, postgres.Interpret("count pending jobs", err)
}

// RecoverStale ends claims that are older than timeout and returns their number: jobs
// with attempts left are queued, others fail (rewrite 7.2, 8.2).
func (q *Queue) RecoverStale(ctx context.Context, runID string, timeout time.Duration) (int, error) {
	n, err := q.q.RecoverStaleClaims(ctx, db.RecoverStaleClaimsParams{RunID: runID, ClaimTimeout: timeout})
	return int(n), postgres.Interpret("recover stale rewrite claims", err)
}

// Unrouted returns the oldest jobs that have no routing decision.
func (q *Queue) Unrouted(ctx context.Context, limit int) ([]rewrite.Job, error) {
	rows, err := q.q.UnroutedJobs(ctx, limit)
	return postgres.Convert("read unrouted jobs", rows, err, asJob)
}

// Route sets the decisions of jobs that have none, by job id.
func (q *Queue) Route(ctx context.Context, decisions map[string]rewrite.RoutingDecision) error {
	var p db.RouteJobsParams
	for id, decision := range decisions {
		p.JobIds, p.Decisions = append(p.JobIds, id), append(p.Decisions, encoded(decision))
	}
	_, err := q.q.RouteJobs(ctx, p)
	return postgres.Interpret("route jobs", err)
}

// Providers returns the providers of the oldest jobs that a run of this mode may claim.
func (q *Queue) Providers(ctx context.Context, mode rewrite.ExecutionMode, limit int) ([]string, error) {
	providers, err := q.q.DueProviders(ctx, db.DueProvidersParams{Mode: string(mode), MaxJobs: limit})
	return providers, postgres.Interpret("read the providers of due jobs", err)
}

// Claim claims eligible jobs of other providers than the refusing ones, up to limit per run with
// all its attempts, and returns them, oldest first (rewrite 7.1).
// Two concurrent calls never claim the same job.
func (q *Queue) Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int, refusing []string) ([]rewrite.Job, error) {
	claimed, err := q.q.ClaimedByRun(ctx, c.RunID)
	if err != nil {
		return nil, postgres.Interpret("count the claims of a run", err)
	}
	rows, err := q.q.ClaimJobs(ctx, db.ClaimJobsParams{
		Mode: string(mode), MaxJobs: max(0, limit-int(claimed)), Worker: c.Worker, ClaimToken: c.Token, RunID: c.RunID,
		Refusing: append([]string{}, refusing...),
	})
	return postgres.Convert("claim jobs", oldestFirst(rows), err, asJob)
}

// TakeOver takes over the claims of earlier attempts of the run and returns their jobs,
// oldest first. Writes of those attempts fail from now on.
func (q *Queue) TakeOver(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error) {
	rows, err := q.q.TakeOverClaims(ctx, db.TakeOverClaimsParams{ClaimToken: c.Token, Worker: c.Worker, RunID: c.RunID})
	return postgres.Convert("take over rewrite claims", oldestFirst(rows), err, asJob)
}

// oldestFirst sorts the rows that an update returned, which have no order.
func oldestFirst(rows []db.Job) []db.Job {
	slices.SortFunc(rows, func(a, b db.Job) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.JobID, b.JobID)
	})
	return rows
}

// Extend renews the claim: it becomes stale one claim timeout from now.
func (q *Queue) Extend(ctx context.Context, c rewrite.Claim) error {
	return postgres.Interpret("extend rewrite claims", q.q.ExtendClaims(ctx, c.Token))
}

// Begin records that the request to the provider is about to begin. It returns false
// if the claim is lost or the job was begun under it before.
func (q *Queue) Begin(ctx context.Context, c rewrite.Claim, jobID string) (bool, error) {
	n, err := q.q.BeginJob(ctx, db.BeginJobParams{JobID: jobID, ClaimToken: c.Token})
	return n == 1, postgres.Interpret("begin job", err)
}

// Release queues the jobs of the claim that have neither begun nor joined a batch, after
// wait. It counts no attempt (rewrite 6.1).
func (q *Queue) Release(ctx context.Context, c rewrite.Claim, wait time.Duration) error {
	return postgres.Interpret("release jobs", q.q.ReleaseJobs(ctx, db.ReleaseJobsParams{
		Wait: wait, Error: rewrite.Overflow, RunID: c.RunID, ClaimToken: c.Token,
	}))
}

// Complete marks jobs completed and records the references of their results, by job
// id. It returns the number of marked jobs: those that the writer has lost are left
// unchanged.
func (q *Queue) Complete(ctx context.Context, by rewrite.Writer, results map[string]string) (int, error) {
	p := db.CompleteJobsParams{RunID: by.RunID, ClaimToken: postgres.OrNull(by.ClaimToken), BatchID: postgres.OrNull(by.BatchID)}
	for id, ref := range results {
		p.JobIds, p.Refs = append(p.JobIds, id), append(p.Refs, ref)
	}
	n, err := q.q.CompleteJobs(ctx, p)
	return int(n), postgres.Interpret("complete jobs", err)
}

// Fail writes the outcomes of jobs that were not completed and returns the number of written ones:
// jobs that the writer has lost are left unchanged.
func (q *Queue) Fail(ctx context.Context, by rewrite.Writer, outcomes []rewrite.Outcome) (int, error) {
	p := db.FailAttemptsParams{RunID: by.RunID, ClaimToken: postgres.OrNull(by.ClaimToken), BatchID: postgres.OrNull(by.BatchID)}
	for _, v := range outcomes {
		p.JobIds = append(p.JobIds, v.JobID)
		p.Statuses = append(p.Statuses, string(v.Status))
		p.Attempts = append(p.Attempts, v.Attempts)
		p.Waits = append(p.Waits, v.Wait.Seconds())
		p.Errors = append(p.Errors, v.Error)
		p.Parts = append(p.Parts, v.Part)
		p.Rounds = append(p.Rounds, v.Rounds)
	}
	n, err := q.q.FailAttempts(ctx, p)
	return int(n), postgres.Interpret("record failed rewrite attempts", err)
}
