package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/db"
)

// Pending reports whether there is anything to claim, route or recover for a run
// of this mode (queue 5).
func (r Rewrites) Pending(ctx context.Context, mode rewrite.ExecutionMode, claimTimeout time.Duration) (bool, error) {
	pending, err := r.db.q.PendingRewriteJobs(ctx, db.PendingRewriteJobsParams{Mode: string(mode), ClaimTimeout: claimTimeout})
	return pending, interpret("look for pending rewrite jobs", err)
}

// RecoverStale queues jobs again whose claim is older than timeout, or fails
// those that have no attempt left, and returns how many (queue 7.2, 8.2).
func (r Rewrites) RecoverStale(ctx context.Context, runID string, timeout time.Duration) (int, error) {
	n, err := r.db.q.RecoverStaleRewriteClaims(ctx, db.RecoverStaleRewriteClaimsParams{RunID: runID, ClaimTimeout: timeout})
	return int(n), interpret("recover stale rewrite claims", err)
}

// Unrouted returns the oldest jobs that the router has not decided about yet.
func (r Rewrites) Unrouted(ctx context.Context, limit int) ([]rewrite.Job, error) {
	rows, err := r.db.q.UnroutedRewriteJobs(ctx, int32(limit))
	if err != nil {
		return nil, interpret("find unrouted rewrite jobs", err)
	}
	return asRewriteJobs(rows)
}

// Route sets the decisions of jobs that have none, by job id.
func (r Rewrites) Route(ctx context.Context, decisions map[string]rewrite.RoutingDecision) error {
	var p db.RouteRewriteJobsParams
	for id, decision := range decisions {
		encoded, err := json.Marshal(decision)
		if err != nil {
			return failure.New(failure.InvariantViolated, err)
		}
		p.JobIds, p.Decisions = append(p.JobIds, id), append(p.Decisions, encoded)
	}
	_, err := r.db.q.RouteRewriteJobs(ctx, p)
	return interpret("route rewrite jobs", err)
}

// Claim claims up to limit eligible jobs and returns them, oldest first (queue
// 7.1). Two that claim at once never get the same job.
func (r Rewrites) Claim(ctx context.Context, c rewrite.Claim, mode rewrite.ExecutionMode, limit int) ([]rewrite.Job, error) {
	rows, err := r.db.q.ClaimRewriteJobs(ctx, db.ClaimRewriteJobsParams{
		Mode: string(mode), MaxJobs: int32(limit), Worker: c.Worker, ClaimToken: c.Token, RunID: c.RunID,
	})
	return oldestFirst(rows, interpret("claim rewrite jobs", err))
}

// Adopt takes over what earlier attempts of the run have claimed, and returns
// it, oldest first. Those attempts can write nothing any more.
func (r Rewrites) Adopt(ctx context.Context, c rewrite.Claim) ([]rewrite.Job, error) {
	rows, err := r.db.q.AdoptRewriteClaims(ctx, db.AdoptRewriteClaimsParams{ClaimToken: c.Token, Worker: c.Worker, RunID: c.RunID})
	return oldestFirst(rows, interpret("adopt rewrite claims", err))
}

func oldestFirst(rows []db.RewriteJob, err error) ([]rewrite.Job, error) {
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b db.RewriteJob) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.JobID, b.JobID)
	})
	return asRewriteJobs(rows)
}

// Begin records that the provider is about to be asked to execute the job. It
// returns false if the claim is lost, or the job was begun under it before.
func (r Rewrites) Begin(ctx context.Context, c rewrite.Claim, jobID string) (bool, error) {
	n, err := r.db.q.BeginRewriteJob(ctx, db.BeginRewriteJobParams{JobID: jobID, ClaimToken: c.Token})
	return n == 1, interpret("begin rewrite job", err)
}

// Release queues what the claim holds and has neither begun nor put into a
// batch, without counting an attempt, and returns how many (queue 6.1).
func (r Rewrites) Release(ctx context.Context, c rewrite.Claim, wait time.Duration, reason string) (int, error) {
	n, err := r.db.q.ReleaseRewriteJobs(ctx, db.ReleaseRewriteJobsParams{
		Wait: wait, Error: reason, RunID: c.RunID, ClaimToken: &c.Token,
	})
	return int(n), interpret("release rewrite jobs", err)
}

// Complete marks jobs completed and keeps where their results are. It returns
// how many it has marked: a job that is not the holder's any more stays.
func (r Rewrites) Complete(ctx context.Context, by rewrite.Holder, results map[string]string) (int, error) {
	p := db.CompleteRewriteJobsParams{RunID: by.RunID, ClaimToken: orNull(by.ClaimToken), BatchID: orNull(by.BatchID)}
	for id, ref := range results {
		p.JobIds, p.Refs = append(p.JobIds, id), append(p.Refs, ref)
	}
	n, err := r.db.q.CompleteRewriteJobs(ctx, p)
	return int(n), interpret("complete rewrite jobs", err)
}

// Fail records failed attempts. It returns how many: a job that is not the
// holder's any more stays.
func (r Rewrites) Fail(ctx context.Context, by rewrite.Holder, verdicts []rewrite.Verdict) (int, error) {
	p := db.FailRewriteAttemptsParams{RunID: by.RunID, ClaimToken: orNull(by.ClaimToken), BatchID: orNull(by.BatchID)}
	for _, v := range verdicts {
		p.JobIds = append(p.JobIds, v.JobID)
		p.Statuses = append(p.Statuses, string(v.Status))
		p.Attempts = append(p.Attempts, int32(v.Attempts))
		p.Waits = append(p.Waits, v.Wait.Seconds())
		p.Errors = append(p.Errors, v.Error)
	}
	n, err := r.db.q.FailRewriteAttempts(ctx, p)
	return int(n), interpret("record failed rewrite attempts", err)
}

// orNull is a parameter that is null if it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
