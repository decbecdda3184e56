package rewrite

import (
	"fmt"
	"slices"
	"time"
)

// MaxJobsPerRun is the upper limit of a run's max_jobs_per_run: the contract forbids
// unlimited runs (rewrite 12).
const MaxJobsPerRun = 50_000

// A RunConfig limits one run and sets the waits before retries (rewrite 6). The order, the
// eligible statuses and not_before_at have one legal value each (rewrite 7.1): they are in the
// SQL of a claim.
type RunConfig struct {
	MaxJobsPerRun int
	MaxRuntime    time.Duration // a run begins no new work after it
	ClaimTimeout  time.Duration // the age at which a claim is stale
	// RetryBackoff holds the wait after the first failed attempt, after the second, and so on;
	// the last one applies to all later attempts. It has no jitter (rewrite 8.1).
	RetryBackoff []time.Duration
	// MaxCapacityRounds is how often in a row a job may be refused for a reason that is not its
	// own before an attempt is counted.
	MaxCapacityRounds int
}

// A Profile holds the defaults of one kind of installation (rewrite 14).
type Profile struct {
	RunConfig
	Every map[Worker]time.Duration // between the runs of a worker
}

// Profiles are the profiles by name.
var Profiles = map[string]Profile{
	"dev": {
		RunConfig{MaxJobsPerRun: 5, MaxRuntime: 2 * time.Minute, ClaimTimeout: 5 * time.Minute, RetryBackoff: []time.Duration{2 * time.Minute, 10 * time.Minute}},
		map[Worker]time.Duration{AsyncLane: 2 * time.Hour, Submitter: 2 * time.Hour, Collector: 2 * time.Hour},
	},
	"stage": {
		RunConfig{MaxJobsPerRun: 30, MaxRuntime: 3 * time.Minute, ClaimTimeout: 15 * time.Minute, RetryBackoff: []time.Duration{5 * time.Minute, 30 * time.Minute}},
		map[Worker]time.Duration{AsyncLane: 30 * time.Minute, Submitter: 30 * time.Minute, Collector: 30 * time.Minute},
	},
	"prod": {
		RunConfig{MaxJobsPerRun: 200, MaxRuntime: 4 * time.Minute, ClaimTimeout: time.Hour, RetryBackoff: []time.Duration{time.Hour, 6 * time.Hour}},
		map[Worker]time.Duration{AsyncLane: time.Hour, Submitter: 15 * time.Minute, Collector: 30 * time.Minute},
	},
}

// Validate returns an error about the first field that violates the contract, or lets a claim
// expire during a call that lasts up to timeout.
func (c RunConfig) Validate(timeout time.Duration) error {
	backoff := make([]float64, len(c.RetryBackoff))
	for i, wait := range c.RetryBackoff {
		backoff[i] = wait.Seconds()
	}
	switch longest := c.MaxRuntime + timeout; {
	case c.MaxJobsPerRun < 1 || c.MaxJobsPerRun > MaxJobsPerRun:
		return fmt.Errorf("max_jobs_per_run is %d: want 1 to %d", c.MaxJobsPerRun, MaxJobsPerRun)
	case c.MaxRuntime <= 0:
		return fmt.Errorf("max_runtime_seconds is %.0f: want 1 or more", c.MaxRuntime.Seconds())
	case c.ClaimTimeout <= longest:
		return fmt.Errorf("claim_timeout_seconds is %.0f: want more than max_runtime_seconds and timeout together (%.0f), or claims expire during a call",
			c.ClaimTimeout.Seconds(), longest.Seconds())
	case len(c.RetryBackoff) == 0 || slices.Min(c.RetryBackoff) <= 0:
		return fmt.Errorf("retry_backoff_seconds are %v: want one or more, each 1 or more", backoff)
	}
	return nil
}

// overflowBackoff is shorter than any schedule's interval, so that the next run claims
// the jobs.
const overflowBackoff = 30 * time.Second

// OverflowBackoff returns the wait of a job that was claimed and not begun (rewrite 6.1).
func (c RunConfig) OverflowBackoff() time.Duration { return min(overflowBackoff, c.RetryBackoff[0]) }

// Done is the outcome of a job whose result is stored.
func (j Job) Done(result string) Outcome {
	return Outcome{JobID: j.ID, Status: Completed, Result: result, Attempts: j.AttemptCount}
}

// AfterFailure decides about a job whose attempt failed: the job is queued, or fails if it has no
// attempts left or every attempt would fail (rewrite 8.1, 8.2).
func (c RunConfig) AfterFailure(job Job, lastError string, permanent bool) Outcome {
	v := Outcome{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount + 1, Error: lastError}
	if permanent || v.Attempts >= job.MaxAttempts {
		v.Status = Failed
		return v
	}
	v.Wait = c.RetryBackoff[min(v.Attempts, len(c.RetryBackoff))-1]
	return v
}

// Postpone decides about a job that was not begun: it is queued, and no attempt is counted
// (rewrite 6.1).
func (c RunConfig) Postpone(job Job, reason string) Outcome {
	return Outcome{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount, Wait: c.OverflowBackoff(), Error: reason, Rounds: job.Rounds}
}

// Refuse decides about a job that its provider refused for a reason that is not the job's: it is
// postponed, up to MaxCapacityRounds in a row. Then an attempt is counted, so that no job waits
// for ever.
func (c RunConfig) Refuse(job Job, reason string) Outcome {
	if job.Rounds+1 >= c.MaxCapacityRounds {
		return c.AfterFailure(job, reason, false)
	}
	job.Rounds++
	return c.Postpone(job, reason)
}
