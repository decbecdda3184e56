package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// A fakeBrake counts how often it was pulled and stays on until it is let go.
type fakeBrake struct {
	mu    sync.Mutex
	pulls int
	on    bool
	err   error
}

func (b *fakeBrake) Pull(context.Context, string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulls++
	b.on = b.err == nil
	return b.err
}

func (b *fakeBrake) On(context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on, b.err
}

// letGo returns when the alarm has noticed.
func (b *fakeBrake) letGo() {
	b.mu.Lock()
	b.on = false
	b.mu.Unlock()
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// An ending is how an attempt of a review ended; without a class, well.
type ending struct {
	review string
	class  failure.Class
}

func TestAlarmTellsAnOutage(t *testing.T) {
	t.Parallel()
	const down, refused, away = failure.UpstreamUnavailable, failure.AuthDenied, failure.DatabaseUnavailable
	tests := map[string]struct {
		endings []ending
		cfg     activities.AlarmConfig
		want    bool
	}{
		"four failures of two reviews":       {[]ending{{"a", down}, {"b", down}, {"a", down}, {"b", down}}, activities.AlarmConfig{}, true},
		"four failures of four reviews":      {[]ending{{"a", down}, {"b", down}, {"c", down}, {"d", down}}, activities.AlarmConfig{}, true},
		"different words for it":             {[]ending{{"a", down}, {"b", failure.NetworkTimeout}, {"c", failure.RateLimited}, {"d", failure.UpstreamInternal}}, activities.AlarmConfig{}, true},
		"a review that fails alone":          {[]ending{{"a", down}, {"a", down}, {"a", down}, {"a", down}, {"a", down}}, activities.AlarmConfig{}, false},
		"a review that nobody answers":       {[]ending{{"a", away}, {"a", failure.NetworkUnreachable}}, activities.AlarmConfig{}, true},
		"one time without an answer":         {[]ending{{"a", away}, {"a", down}, {"a", down}}, activities.AlarmConfig{}, false},
		"an answer in between":               {[]ending{{"a", away}, {"b", ""}, {"a", away}}, activities.AlarmConfig{}, false},
		"more failures are asked for":        {[]ending{{"a", away}, {"a", away}}, activities.AlarmConfig{Failures: 5}, false},
		"three failures":                     {[]ending{{"a", down}, {"b", down}, {"c", down}}, activities.AlarmConfig{}, false},
		"a success in between":               {[]ending{{"a", down}, {"b", down}, {"c", down}, {"d", ""}, {"e", down}}, activities.AlarmConfig{}, false},
		"failures of the changes themselves": {[]ending{{"a", failure.TooLarge}, {"b", failure.ContentPolicy}, {"c", failure.SchemaInvalid}, {"d", failure.NotFound}}, activities.AlarmConfig{}, false},
		"two reviews refused":                {[]ending{{"a", refused}, {"b", refused}}, activities.AlarmConfig{}, true},
		"a review refused alone":             {[]ending{{"a", refused}, {"a", refused}, {"a", refused}, {"a", refused}}, activities.AlarmConfig{}, false},
		"a review refused, another failing":  {[]ending{{"a", refused}, {"b", down}}, activities.AlarmConfig{}, false},
		"no credit for two reviews":          {[]ending{{"a", failure.QuotaExhausted}, {"b", failure.QuotaExhausted}}, activities.AlarmConfig{}, true},
		"refusals that are to be ignored":    {[]ending{{"a", refused}, {"b", refused}, {"c", refused}, {"d", refused}}, activities.AlarmConfig{IgnoreDenied: true}, false},
		"fewer failures are asked for":       {[]ending{{"a", down}, {"b", down}}, activities.AlarmConfig{Failures: 2}, true},
		"more reviews are asked for":         {[]ending{{"a", down}, {"b", down}, {"a", down}, {"b", down}}, activities.AlarmConfig{Reviews: 3}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				brake := &fakeBrake{}
				alarm := activities.NewAlarm(slog.New(slog.DiscardHandler), tt.cfg, brake)
				for _, e := range tt.endings {
					report(t, alarm, e)
				}
				if got := brake.pulls > 0; got != tt.want {
					t.Errorf("brake pulled: %t, want %t", got, tt.want)
				}
				brake.letGo()
			})
		})
	}
}

func report(t *testing.T, alarm *activities.Alarm, e ending) {
	t.Helper()
	if e.class == "" {
		alarm.Succeeded()
		return
	}
	alarm.Failed(t.Context(), e.review, e.class)
}

// Failures that lie days apart on a quiet installation are no outage.
func TestAlarmForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		brake := &fakeBrake{}
		alarm := activities.NewAlarm(slog.New(slog.DiscardHandler), activities.AlarmConfig{}, brake)
		for _, review := range []string{"a", "b", "c", "d", "e", "f"} {
			alarm.Failed(t.Context(), review, failure.UpstreamUnavailable)
			time.Sleep(2 * time.Minute)
		}
		if brake.pulls > 0 {
			t.Error("brake pulled")
		}
	})
}

// What was already on its way to this process when the brake was pulled waits.
func TestAttemptsWaitWhileTheBrakeIsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		brake := &fakeBrake{}
		alarm := activities.NewAlarm(slog.New(slog.DiscardHandler), activities.AlarmConfig{Failures: 2}, brake)
		if err := alarm.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
		alarm.Failed(t.Context(), "a", failure.UpstreamUnavailable)
		alarm.Failed(t.Context(), "b", failure.UpstreamUnavailable)

		stopping, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := alarm.Admit(stopping); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an attempt was admitted or ended with %v while the brake was on", err)
		}
		brake.letGo()
		if err := alarm.Admit(t.Context()); err != nil {
			t.Errorf("an attempt was not admitted when the brake was off: %v", err)
		}
	})
}

// A brake that cannot be pulled must not keep anybody waiting.
func TestAttemptsDoNotWaitForABrakeThatFails(t *testing.T) {
	t.Parallel()
	brake := &fakeBrake{err: errors.New("no Temporal")}
	alarm := activities.NewAlarm(slog.New(slog.DiscardHandler), activities.AlarmConfig{Failures: 2}, brake)
	alarm.Failed(t.Context(), "a", failure.UpstreamUnavailable)
	alarm.Failed(t.Context(), "b", failure.UpstreamUnavailable)
	if err := alarm.Admit(t.Context()); err != nil || brake.pulls != 1 {
		t.Errorf("admitted with %v after %d pulls", err, brake.pulls)
	}
}
