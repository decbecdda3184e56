package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxJobsPerRun is the upper limit of a run's max_jobs_per_run: the contract forbids
// unlimited runs (rewrite 12).
const MaxJobsPerRun = 50_000

// MaxRounds is how often in a row a job may be refused for a reason that is not its own before an
// attempt is counted.
const MaxRounds = 100

// A RunConfig limits one run and sets the waits before retries (rewrite 6). A field that is 0 or
// empty has the value of the profile. The order, the eligible statuses and not_before_at have one
// legal value each (rewrite 7.1): they are in the SQL of a claim.
type RunConfig struct {
	// Defaults of the fields below: dev, stage or prod (rewrite/docs/rewrite.md).
	Profile string `yaml:"profile" default:"prod" oneof:"dev stage prod"`
	// Largest number of jobs that one run claims.
	MaxJobsPerRun int `yaml:"max_jobs_per_run" default:"0" check:"not-negative"`
	// Seconds after which a run claims no more jobs.
	MaxRuntimeSeconds int `yaml:"max_runtime_seconds" default:"0" check:"not-negative"`
	// Seconds after which a claim expires and its job is queued again. More than
	// max_runtime_seconds and timeout together.
	ClaimTimeoutSeconds int `yaml:"claim_timeout_seconds" default:"0" check:"not-negative"`
	// Seconds between an attempt of a job and the next: after the first, the second, and so
	// on; the last value repeats.
	RetryBackoffSeconds []int `yaml:"retry_backoff_seconds"`
	// How often each worker runs.
	Every time.Duration `yaml:"every" default:"0s" check:"not-negative"`
}

// Profiles are the defaults of an installation, by name (rewrite 14).
var Profiles = map[string]RunConfig{
	"dev":   {MaxJobsPerRun: 5, MaxRuntimeSeconds: 120, ClaimTimeoutSeconds: 300, RetryBackoffSeconds: []int{120, 600}, Every: 2 * time.Hour},
	"stage": {MaxJobsPerRun: 30, MaxRuntimeSeconds: 180, ClaimTimeoutSeconds: 900, RetryBackoffSeconds: []int{300, 1800}, Every: 30 * time.Minute},
	"prod":  {MaxJobsPerRun: 200, MaxRuntimeSeconds: 240, ClaimTimeoutSeconds: 3600, RetryBackoffSeconds: []int{3600, 21600}},
}

// Complete returns c with the values of its profile where it has none.
func (c RunConfig) Complete() RunConfig {
	p := Profiles[c.Profile]
	c.MaxJobsPerRun = cmp.Or(c.MaxJobsPerRun, p.MaxJobsPerRun)
	c.MaxRuntimeSeconds = cmp.Or(c.MaxRuntimeSeconds, p.MaxRuntimeSeconds)
	c.ClaimTimeoutSeconds = cmp.Or(c.ClaimTimeoutSeconds, p.ClaimTimeoutSeconds)
	if len(c.RetryBackoffSeconds) == 0 {
		c.RetryBackoffSeconds = p.RetryBackoffSeconds
	}
	c.Every = cmp.Or(c.Every, p.Every)
	return c
}

// Interval returns the time between the runs of a worker. Those of profile prod differ (rewrite 5).
func (c RunConfig) Interval(w Worker) time.Duration {
	return cmp.Or(c.Every, map[Worker]time.Duration{Submitter: 15 * time.Minute, Collector: 30 * time.Minute, AsyncLane: time.Hour}[w])
}

// MaxRuntime is the time after which a run begins no new work.
func (c RunConfig) MaxRuntime() time.Duration {
	return time.Duration(c.MaxRuntimeSeconds) * time.Second
}

// ClaimTimeout is the age at which a claim is stale.
func (c RunConfig) ClaimTimeout() time.Duration {
	return time.Duration(c.ClaimTimeoutSeconds) * time.Second
}

// backoff returns the wait after a number of failed attempts. It has no jitter (rewrite 8.1).
func (c RunConfig) backoff(attempts int) time.Duration {
	return time.Duration(c.RetryBackoffSeconds[min(attempts, len(c.RetryBackoffSeconds))-1]) * time.Second
}

// Validate returns an error about the first field that violates the contract, or lets a claim
// expire during a call that lasts up to timeout.
func (c RunConfig) Validate(timeout time.Duration) error {
	switch longest := c.MaxRuntime() + timeout; {
	case c.MaxJobsPerRun < 1 || c.MaxJobsPerRun > MaxJobsPerRun:
		return fmt.Errorf("max_jobs_per_run is %d: want 1 to %d", c.MaxJobsPerRun, MaxJobsPerRun)
	case c.MaxRuntimeSeconds <= 0:
		return fmt.Errorf("max_runtime_seconds is %d: want 1 or more", c.MaxRuntimeSeconds)
	case c.ClaimTimeout() <= longest:
		return fmt.Errorf("claim_timeout_seconds is %d: want more than max_runtime_seconds and timeout together (%.0f), or claims expire during a call",
			c.ClaimTimeoutSeconds, longest.Seconds())
	case len(c.RetryBackoffSeconds) == 0 || slices.Min(c.RetryBackoffSeconds) <= 0:
		return fmt.Errorf("retry_backoff_seconds are %v: want one or more, each 1 or more", c.RetryBackoffSeconds)
	}
	return nil
}

// overflowBackoff is shorter than any schedule's interval, so that the next run claims
// the jobs.
const overflowBackoff = 30 * time.Second

// OverflowBackoff returns the wait of a job that was claimed and not begun (rewrite 6.1).
func (c RunConfig) OverflowBackoff() time.Duration { return min(overflowBackoff, c.backoff(1)) }

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
	v.Wait = c.backoff(v.Attempts)
	return v
}

// Postpone decides about a job that was not begun: it is queued, and no attempt is counted
// (rewrite 6.1).
func (c RunConfig) Postpone(job Job, reason string) Outcome {
	return Outcome{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount, Wait: c.OverflowBackoff(), Error: reason, Rounds: job.Rounds}
}

// Refuse decides about a job that its provider refused for a reason that is not the job's: it is
// postponed, up to [MaxRounds] in a row. Then an attempt is counted, so that no job waits
// for ever.
func (c RunConfig) Refuse(job Job, reason string) Outcome {
	if job.Rounds+1 >= MaxRounds {
		return c.AfterFailure(job, reason, false)
	}
	job.Rounds++
	return c.Postpone(job, reason)
}
