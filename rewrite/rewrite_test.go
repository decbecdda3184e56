package rewrite

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The statuses and their aliases (rewrite 3).
func TestParseStatus(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]Status{
		"queued": Queued, "processing": Processing, "batch_submitted": BatchSubmitted, "completed": Completed,
		"failed": Failed, "canceled": Canceled, "running": Processing, "succeeded": Completed,
	} {
		if got, err := ParseStatus(word); err != nil || got != want {
			t.Errorf("%s is read as %q, %v; want %q", word, got, err, want)
		}
	}
	for _, word := range []string{"", "done", "Queued", "cancelled"} {
		if got, err := ParseStatus(word); err == nil {
			t.Errorf("%q is read as %q", word, got)
		}
	}
}

// The wait is the same every time, and no attempt follows the last (rewrite 8.1, 8.2).
func TestAfterFailure(t *testing.T) {
	t.Parallel()
	cfg := RunConfig{RetryBackoffSeconds: []int{900, 7200}}
	for name, tt := range map[string]struct {
		attempts, maximum int
		permanent         bool
		want              Outcome
	}{
		"first of two":        {0, 2, false, Outcome{Status: Queued, Attempts: 1, Wait: 900 * time.Second}},
		"last of two":         {1, 2, false, Outcome{Status: Failed, Attempts: 2}},
		"second of five":      {1, 5, false, Outcome{Status: Queued, Attempts: 2, Wait: 7200 * time.Second}},
		"beyond the list":     {3, 9, false, Outcome{Status: Queued, Attempts: 4, Wait: 7200 * time.Second}},
		"the only one":        {0, 1, false, Outcome{Status: Failed, Attempts: 1}},
		"one that cannot end": {0, 5, true, Outcome{Status: Failed, Attempts: 1}},
		"beyond the last":     {7, 2, false, Outcome{Status: Failed, Attempts: 8}},
	} {
		tt.want.JobID, tt.want.Error = "j", "E"
		for range 3 {
			if got := cfg.AfterFailure(Job{Order: Order{ID: "j", MaxAttempts: tt.maximum}, AttemptCount: tt.attempts}, "E", tt.permanent); got != tt.want {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
		}
	}
	short := cfg.Postpone(Job{Order: Order{ID: "j"}, AttemptCount: 1}, Overflow)
	if short.Attempts != 1 || short.Status != Queued || short.Wait <= 0 || short.Wait > time.Minute { // (rewrite 6.1)
		t.Errorf("overflow: %+v", short)
	}
}

// The example of the contract is valid (rewrite 6), and each limit is checked.
func TestRunConfigIsValidated(t *testing.T) {
	t.Parallel()
	example := RunConfig{MaxJobsPerRun: 25, MaxRuntimeSeconds: 240, ClaimTimeoutSeconds: 600, RetryBackoffSeconds: []int{900, 7200}}
	if err := example.Validate(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, breaks := range map[string]func(*RunConfig){
		"max_jobs_per_run is 0":            func(c *RunConfig) { c.MaxJobsPerRun = 0 }, // unlimited (rewrite 12)
		"max_jobs_per_run is 50001":        func(c *RunConfig) { c.MaxJobsPerRun = MaxJobsPerRun + 1 },
		"max_runtime_seconds is 0":         func(c *RunConfig) { c.MaxRuntimeSeconds = 0 },
		"claim_timeout_seconds is 360":     func(c *RunConfig) { c.ClaimTimeoutSeconds = 360 }, // expires during a call
		"retry_backoff_seconds are []":     func(c *RunConfig) { c.RetryBackoffSeconds = nil },
		"retry_backoff_seconds are [90 0]": func(c *RunConfig) { c.RetryBackoffSeconds = []int{90, 0} },
	} {
		broken := example
		breaks(&broken)
		if err := broken.Validate(2 * time.Minute); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every profile has valid limits and intervals (rewrite 5, 14), and each field overrides them
// (rewrite 13).
func TestProfiles(t *testing.T) {
	t.Parallel()
	overridden := RunConfig{Profile: "prod", MaxJobsPerRun: 7, MaxRuntimeSeconds: 8, ClaimTimeoutSeconds: 900, RetryBackoffSeconds: []int{10}, Every: time.Minute}
	for _, tt := range []struct {
		config, want                  RunConfig
		async, submission, collection time.Duration
	}{
		{RunConfig{Profile: "dev"}, RunConfig{"dev", 5, 120, 300, []int{120, 600}, 2 * time.Hour}, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		{RunConfig{Profile: "stage"}, RunConfig{"stage", 30, 180, 900, []int{300, 1800}, 30 * time.Minute}, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute},
		{RunConfig{Profile: "prod"}, RunConfig{"prod", 200, 240, 3600, []int{3600, 21600}, 0}, time.Hour, 15 * time.Minute, 30 * time.Minute},
		{overridden, overridden, time.Minute, time.Minute, time.Minute},
	} {
		got := tt.config.Complete()
		if err := got.Validate(2 * time.Minute); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v is completed to %+v, %v", tt.config, got, err)
		}
		if got.Interval(AsyncLane) != tt.async || got.Interval(Submitter) != tt.submission || got.Interval(Collector) != tt.collection {
			t.Errorf("%+v: the intervals are %s, %s, %s", tt.config, got.Interval(AsyncLane), got.Interval(Submitter), got.Interval(Collector))
		}
	}
}

// A routing decision has no place for a message (rewrite 4, 12).
func TestDecisionHasNoPlaceForText(t *testing.T) {
	t.Parallel()
	decision := RoutingDecision{Provider: "openai", AdapterKind: OpenAIChat, Model: "small", PromptVersion: "v1", PolicyVersion: "p", Mode: Batch}
	if err := decision.Validate(); err != nil {
		t.Fatal(err)
	}
	decision.Model = "you never clean"
	if decision.Validate() == nil {
		t.Error("a model's name may be a message")
	}
}

func goodOrder() Order {
	return Order{
		RequestID: uuid.NewString(), Surface: DirectMessage, Strength: LightTouch, Languages: LanguagePair{"en", "zh-Hant-TW"},
		RecipientUserID: uuid.NewString(), RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(),
	}
}

func TestOrderIsValidated(t *testing.T) {
	t.Parallel()
	if err := goodOrder().Validate(); err != nil {
		t.Error(err)
	}
	for want, breaks := range map[string]func(*Order){
		"job_id is no UUID":                           func(o *Order) { o.ID = "1" },
		"rewrite_request_id is no UUID":               func(o *Order) { o.RequestID = "" },
		"recipient_user_id is no UUID":                func(o *Order) { o.RecipientUserID = "{" + o.RecipientUserID + "}" },
		"recipient_snapshot_id is no UUID":            func(o *Order) { o.RecipientSnapshotID = "x" },
		"recipient_preference_snapshot_id is no UUID": func(o *Order) { o.RecipientPreferenceSnapshotID = "x" },
		"task is another":                             func(o *Order) { o.Task = "review" },
		"surface is none of":                          func(o *Order) { o.Surface = "mail" },
		"rewrite_strength is none of":                 func(o *Order) { o.Strength = "" },
		"language_pair.from is no BCP-47 tag":         func(o *Order) { o.Languages.From = "english!" },
		"language_pair.to is no BCP-47 tag":           func(o *Order) { o.Languages.To = "und" },
		"max_attempts is -1":                          func(o *Order) { o.MaxAttempts = -1 },
		"max_attempts is 51":                          func(o *Order) { o.MaxAttempts = 51 },
		"routing_decision.provider":                   func(o *Order) { o.Routing = &RoutingDecision{} },
	} {
		o := goodOrder()
		breaks(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// No batch exceeds a limit, and an item waits only for room (rewrite 9).
func TestFit(t *testing.T) {
	t.Parallel()
	limits := BatchLimits{Requests: 3, Tokens: 100}
	for _, tt := range []struct {
		tokens         []int
		enqueued, want int
	}{
		{[]int{10, 10, 10, 10}, 0, 3},
		{[]int{60, 60}, 0, 1},
		{[]int{60, 40}, 0, 2},
		{[]int{60}, 50, 0},
		{[]int{10}, 200, 0},
		{[]int{1000, 1}, 0, 1}, // alone, or it is never submitted
		{[]int{1000}, 1, 0},
		{nil, 0, 0},
	} {
		if got := limits.Fit(tt.tokens, tt.enqueued); got != tt.want {
			t.Errorf("%v with %d enqueued: %d fit, want %d", tt.tokens, tt.enqueued, got, tt.want)
		}
	}
}
