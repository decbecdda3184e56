package rewrite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// MaxJobsPerRun is the most a run may be configured to process: a run without a
// limit is against the contract (queue 12).
const MaxJobsPerRun = 50_000

// A RunConfig says how much one run may do, and when what it could not do is
// tried again (queue 6). The field names are those of the contract.
type RunConfig struct {
	MaxJobsPerRun       int      `json:"max_jobs_per_run"`
	MaxRuntimeSeconds   int      `json:"max_runtime_seconds"`
	ClaimTimeoutSeconds int      `json:"claim_timeout_seconds"`
	Order               string   `json:"order"`
	EligibleStatuses    []Status `json:"eligible_statuses"`
	RespectNotBeforeAt  bool     `json:"respect_not_before_at"`
	// RetryBackoffSeconds holds the wait after the first failed attempt, after
	// the second, and so on; the last one goes for all that follow.
	RetryBackoffSeconds []int `json:"retry_backoff_seconds"`
}

// A Profile is the defaults of one kind of installation (queue 14).
type Profile struct {
	RunConfig
	// ScheduleSeconds is the cadence of the async lane. The two functions of the
	// batch lane have cadences of their own (queue 5).
	ScheduleSeconds int `json:"schedule_seconds"`
}

// Profiles are the names of the profiles that ship.
func Profiles() []string { return []string{"dev", "stage", "prod"} }

//go:embed profiles
var profiles embed.FS

// LoadProfile returns the profile called name.
func LoadProfile(name string) (Profile, error) {
	var p Profile
	if !slices.Contains(Profiles(), name) {
		return p, fmt.Errorf("there is no profile %q: want one of %v", name, Profiles())
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
	return p, p.Validate()
}

// Validate reports the first field that would break the contract. Order,
// eligible statuses and not_before_at are claiming rules: the contract fixes
// them, and another value is refused rather than ignored (queue 7.1, 13).
func (c RunConfig) Validate() error {
	switch {
	case c.MaxJobsPerRun < 1 || c.MaxJobsPerRun > MaxJobsPerRun:
		return fmt.Errorf("max_jobs_per_run is %d: want 1 to %d", c.MaxJobsPerRun, MaxJobsPerRun)
	case c.MaxRuntimeSeconds < 1:
		return fmt.Errorf("max_runtime_seconds is %d: want 1 or more", c.MaxRuntimeSeconds)
	case c.ClaimTimeoutSeconds <= c.MaxRuntimeSeconds:
		return fmt.Errorf("claim_timeout_seconds is %d: want more than max_runtime_seconds (%d), or claims lapse while their run goes on",
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

// MaxRuntime is for how long a run may begin new work.
func (c RunConfig) MaxRuntime() time.Duration {
	return time.Duration(c.MaxRuntimeSeconds) * time.Second
}

// ClaimTimeout is how old a claim must be to be stale.
func (c RunConfig) ClaimTimeout() time.Duration {
	return time.Duration(c.ClaimTimeoutSeconds) * time.Second
}

// Backoff is the wait after the given failed attempt, from 1. It is the same
// every time (queue 8.1).
func (c RunConfig) Backoff(attempt int) time.Duration {
	i := min(max(attempt, 1), len(c.RetryBackoffSeconds)) - 1
	return time.Duration(c.RetryBackoffSeconds[i]) * time.Second
}

// overflowBackoff is short against any cadence: what a run had to leave is for
// the next one.
const overflowBackoff = 30 * time.Second

// OverflowBackoff is the wait of a job that was claimed and could not be begun
// (queue 6.1).
func (c RunConfig) OverflowBackoff() time.Duration { return min(overflowBackoff, c.Backoff(1)) }

// MaxCollectedPerRun bounds the results that one run of the collector takes in.
// It is above what is submitted between two of its runs.
func (c RunConfig) MaxCollectedPerRun() int { return 4 * c.MaxJobsPerRun }

// AfterFailure decides what becomes of a job whose attempt has failed with the
// given error: it waits for the next attempt, or fails (queue 8.1, 8.2). A
// failure is permanent if no other attempt could end better.
func (c RunConfig) AfterFailure(job Job, lastError string, permanent bool) Verdict {
	v := Verdict{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount + 1, Error: lastError}
	if permanent || v.Attempts >= job.MaxAttempts {
		v.Status = Failed
		return v
	}
	v.Wait = c.Backoff(v.Attempts)
	return v
}

// Postpone queues a job again that nobody has tried to execute: that is no
// attempt (queue 6.1).
func (c RunConfig) Postpone(job Job, reason string) Verdict {
	return Verdict{JobID: job.ID, Status: Queued, Attempts: job.AttemptCount, Wait: c.OverflowBackoff(), Error: reason}
}
