package rewrite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// MaxJobsPerRun is the upper limit of a run's max_jobs_per_run: the contract forbids
// unlimited runs (rewrite 12).
const MaxJobsPerRun = 50_000

// A RunConfig limits one run and sets the waits before retries (rewrite 6). The field
// names are those of the contract.
type RunConfig struct {
	MaxJobsPerRun       int      `json:"max_jobs_per_run"`
	MaxRuntimeSeconds   int      `json:"max_runtime_seconds"`
	ClaimTimeoutSeconds int      `json:"claim_timeout_seconds"`
	Order               string   `json:"order"`
	EligibleStatuses    []Status `json:"eligible_statuses"`
	RespectNotBeforeAt  bool     `json:"respect_not_before_at"`
	// RetryBackoffSeconds holds the wait after the first failed attempt, after the second,
	// and so on; the last value applies to all later attempts.
	RetryBackoffSeconds []int `json:"retry_backoff_seconds"`
	// MaxCapacityRounds is how often in a row a job may be refused for a reason that is not its
	// own before an attempt is counted.
	MaxCapacityRounds int `json:"-"`
}

// A Profile holds the defaults of one kind of installation (rewrite 14).
type Profile struct {
	RunConfig
	// ScheduleSeconds is the interval of the async lane. The other two are intervals of
	// the batch lane (rewrite 5).
	ScheduleSeconds int `json:"schedule_seconds"`
	SubmitSeconds   int `json:"submit_seconds"`
	CollectSeconds  int `json:"collect_seconds"`
}

// Profiles returns the names of the embedded profiles.
func Profiles() []string { return []string{"dev", "stage", "prod"} }

//go:embed profiles
var profiles embed.FS

// LoadProfile returns the profile with the given name.
func LoadProfile(name string) (Profile, error) {
	var p Profile
	if !slices.Contains(Profiles(), name) {
		return p, fmt.Errorf("unknown profile %q: want one of %v", name, Profiles())
	}
	data, err := profiles.ReadFile("profiles/" + name + ".json")
	if err != nil {
		return p, fmt.Errorf("read profile %s: %w", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, fmt.Errorf("read profile %s: %w", name, err)
	}
	return p, nil
}

// Validate returns an error about the first field that violates the contract. The
// contract fixes the values of order, eligible_statuses and respect_not_before_at; another
// value is an error (rewrite 7.1, 13).
func (c RunConfig) Validate() error {
	switch {
	case c.MaxJobsPerRun < 1 || c.MaxJobsPerRun > MaxJobsPerRun:
		return fmt.Errorf("max_jobs_per_run is %d: want 1 to %d", c.MaxJobsPerRun, MaxJobsPerRun)
	case c.MaxRuntimeSeconds < 1:
		return fmt.Errorf("max_runtime_seconds is %d: want 1 or more", c.MaxRuntimeSeconds)
	case c.ClaimTimeoutSeconds <= c.MaxRuntimeSeconds:
		return fmt.Errorf("claim_timeout_seconds is %d: want more than max_runtime_seconds (%d), or claims expire during their run",
			c.ClaimTimeoutSeconds, c.MaxRuntimeSeconds)
	case c.Order != "created_at_asc":
		return fmt.Errorf("order is %q: want created_at_asc", c.Order)
	case !slices.Equal(c.EligibleStatuses, []Status{Queued}):
		return fmt.Errorf("eligible_statuses are %v: want [%s]", c.EligibleStatuses, Queued)
	case !c.RespectNotBeforeAt:
		return fmt.Errorf("respect_not_before_at is false: want true")
	case len(c.RetryBackoffSeconds) == 0 || slices.Min(c.RetryBackoffSeconds) < 1:
		return fmt.Errorf("retry_backoff_seconds are %v: want one or more, each 1 or more", c.RetryBackoffSeconds)
	}
	return nil
}

// Covers returns an error if a claim could expire during a call that lasts up to timeout.
func (c RunConfig) Covers(timeout time.Duration) error {
	if longest := c.MaxRuntime() + timeout; c.ClaimTimeout() <= longest {
		return fmt.Errorf("claim_timeout_seconds is %d: want more than max_runtime_seconds and rewrite.timeout together (%s), or claims expire during a call",
			c.ClaimTimeoutSeconds, longest)
	}
	return nil
}

// MaxRuntime returns how long a run may begin new work.
func (c RunConfig) MaxRuntime() time.Duration {
	return time.Duration(c.MaxRuntimeSeconds) * time.Second
}

// ClaimTimeout returns the age at which a claim is stale.
func (c RunConfig) ClaimTimeout() time.Duration {
	return time.Duration(c.ClaimTimeoutSeconds) * time.Second
}

// Backoff returns the wait after the given failed attempt, from 1. It has no jitter
// (rewrite 8.1).
func (c RunConfig) Backoff(attempt int) time.Duration {
	i := min(max(attempt, 1), len(c.RetryBackoffSeconds)) - 1
	return time.Duration(c.RetryBackoffSeconds[i]) * time.Second
}

// overflowBackoff is shorter than any schedule's interval, so that the next run claims
// the jobs.
const overflowBackoff = 30 * time.Second

// OverflowBackoff returns the wait of a job that was claimed and not begun (rewrite 6.1).
func (c RunConfig) OverflowBackoff() time.Duration { return min(overflowBackoff, c.Backoff(1)) }

// MaxCollectedPerRun returns the limit of results per run of the collector. It exceeds
// the number of jobs that are submitted between two of its runs.
func (c RunConfig) MaxCollectedPerRun() int { return 4 * c.MaxJobsPerRun }

// AfterFailure decides about a job whose attempt failed: the job is queued, or fails if it has no
// attempts left or every attempt would fail (rewrite 8.1, 8.2).
func (c RunConfig) AfterFailure(job Job, lastError string, permanent bool) Outcome {
	v := Outcome{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount + 1, Error: lastError}
	if permanent || v.Attempts >= job.MaxAttempts {
		v.Status = Failed
		return v
	}
	v.Wait = c.Backoff(v.Attempts)
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
