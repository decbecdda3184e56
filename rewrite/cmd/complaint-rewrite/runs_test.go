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
		jobs                          int
		runtime, claims               time.Duration
		backoff                       []time.Duration
		async, submission, collection time.Duration
	}{
		"dev":        {profile("dev"), 5, 120 * time.Second, 300 * time.Second, []time.Duration{120 * time.Second, 600 * time.Second}, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		"stage":      {profile("stage"), 30, 180 * time.Second, 900 * time.Second, []time.Duration{300 * time.Second, 1800 * time.Second}, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute},
		"prod":       {profile("prod"), 200, 240 * time.Second, 3600 * time.Second, []time.Duration{3600 * time.Second, 21600 * time.Second}, time.Hour, 15 * time.Minute, 30 * time.Minute},
		"overridden": {overridden, 7, 8 * time.Second, 9 * time.Second, []time.Duration{10 * time.Second}, time.Minute, 2 * time.Minute, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&settings{Run: tt.cfg}).runs()
			if err != nil {
				t.Fatal(err)
			}
			want := rewrite.Profile{
				RunConfig: rewrite.RunConfig{MaxJobsPerRun: tt.jobs, MaxRuntime: tt.runtime, ClaimTimeout: tt.claims, RetryBackoff: tt.backoff, MaxCapacityRounds: 100},
				Every:     map[rewrite.Worker]time.Duration{rewrite.AsyncLane: tt.async, rewrite.Submitter: tt.submission, rewrite.Collector: tt.collection},
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("runs are %+v, want %+v", got, want)
			}
		})
	}
	for name, c := range map[string]settings{
		"claim_timeout_seconds is 60":      {Run: runSettings{Profile: "dev", MaxCapacityRounds: 100, ClaimTimeoutSeconds: 60}},
		"claim_timeout_seconds is 300":     {Run: runSettings{Profile: "dev", MaxCapacityRounds: 100}, Timeout: 3 * time.Minute}, // expires during a call
		"retry_backoff_seconds are [90 0]": {Run: runSettings{Profile: "dev", MaxCapacityRounds: 100, RetryBackoffSeconds: []int{90, 0}}},
	} {
		if _, err := c.runs(); failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
