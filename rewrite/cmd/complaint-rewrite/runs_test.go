package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// Every profile has its limits and intervals, and the configuration overrides each
// of them (rewrite 13).
func TestProfilesAndOverrides(t *testing.T) {
	t.Parallel()
	profile := func(name string) runSettings { return runSettings{Profile: name, MaxCapacityRounds: 100} }
	overridden := runSettings{
		Profile: "prod", MaxCapacityRounds: 100, MaxJobsPerRun: 7, MaxRuntimeSeconds: 8, ClaimTimeoutSeconds: 9, RetryBackoffSeconds: []int{10},
		AsyncEvery: time.Minute, SubmitEvery: 2 * time.Minute, CollectEvery: 3 * time.Minute,
	}
	for name, tt := range map[string]struct {
		cfg                           runSettings
		jobs, runtime, claims         int
		backoff                       []int
		async, submission, collection time.Duration
	}{
		"dev":        {profile("dev"), 5, 120, 300, []int{120, 600}, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		"stage":      {profile("stage"), 30, 180, 900, []int{300, 1800}, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute},
		"prod":       {profile("prod"), 200, 240, 3600, []int{3600, 21600}, time.Hour, 15 * time.Minute, 30 * time.Minute},
		"overridden": {overridden, 7, 8, 9, []int{10}, time.Minute, 2 * time.Minute, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, every, err := (&settings{Run: tt.cfg}).runs()
			if err != nil {
				t.Fatal(err)
			}
			want := rewrite.RunConfig{
				MaxJobsPerRun: tt.jobs, MaxRuntimeSeconds: tt.runtime, ClaimTimeoutSeconds: tt.claims, Order: "created_at_asc",
				EligibleStatuses: []rewrite.Status{rewrite.Queued}, RespectNotBeforeAt: true, RetryBackoffSeconds: tt.backoff, MaxCapacityRounds: 100,
			}
			if !reflect.DeepEqual(run, want) {
				t.Errorf("runs are %+v, want %+v", run, want)
			}
			if every[rewrite.AsyncLane] != tt.async || every[rewrite.Submitter] != tt.submission || every[rewrite.Collector] != tt.collection {
				t.Errorf("intervals are %v", every)
			}
		})
	}
	for name, c := range map[string]settings{
		"claim_timeout_seconds is 60":  {Run: runSettings{Profile: "dev", MaxCapacityRounds: 100, ClaimTimeoutSeconds: 60}},
		"claim_timeout_seconds is 300": {Run: runSettings{Profile: "dev", MaxCapacityRounds: 100}, Timeout: 3 * time.Minute}, // expires during a call
		"run.profile":                  {Run: runSettings{Profile: "test", MaxCapacityRounds: 100}},
	} {
		if _, _, err := c.runs(); failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
