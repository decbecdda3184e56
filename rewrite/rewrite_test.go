package rewrite

import (
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
	cfg := RunConfig{RetryBackoff: []time.Duration{900 * time.Second, 7200 * time.Second}}
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
			if got := cfg.AfterFailure(Job{ID: "j", AttemptCount: tt.attempts, MaxAttempts: tt.maximum}, "E", tt.permanent); got != tt.want {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
		}
	}
	short := cfg.Postpone(Job{ID: "j", AttemptCount: 1}, Overflow)
	if short.Attempts != 1 || short.Status != Queued || short.Wait <= 0 || short.Wait > time.Minute { // (rewrite 6.1)
		t.Errorf("overflow: %+v", short)
	}
}

// The profiles are valid, and so is the example of the contract (rewrite 6, 14).
func TestProfiles(t *testing.T) {
	t.Parallel()
	for name, p := range Profiles {
		if err := p.Validate(2 * time.Minute); err != nil || len(p.Every) != len(Workers()) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	example := RunConfig{
		MaxJobsPerRun: 25, MaxRuntime: 240 * time.Second, ClaimTimeout: 600 * time.Second, RetryBackoff: []time.Duration{900 * time.Second, 7200 * time.Second},
	}
	if err := example.Validate(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, breaks := range map[string]func(*RunConfig){
		"max_jobs_per_run is 0":         func(c *RunConfig) { c.MaxJobsPerRun = 0 }, // unlimited (rewrite 12)
		"max_jobs_per_run is 50001":     func(c *RunConfig) { c.MaxJobsPerRun = MaxJobsPerRun + 1 },
		"max_runtime_seconds is 0":      func(c *RunConfig) { c.MaxRuntime = 0 },
		"claim_timeout_seconds is 360":  func(c *RunConfig) { c.ClaimTimeout = 360 * time.Second }, // expires during a call
		"retry_backoff_seconds are []":  func(c *RunConfig) { c.RetryBackoff = nil },
		"retry_backoff_seconds are [0]": func(c *RunConfig) { c.RetryBackoff = []time.Duration{0} },
	} {
		broken := example
		breaks(&broken)
		if err := broken.Validate(2 * time.Minute); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
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
		"job_id is no UUID":                           func(o *Order) { o.JobID = "1" },
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
