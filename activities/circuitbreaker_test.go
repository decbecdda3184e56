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

// A fakeBreaker counts how often it was pulled and stays on until it is let go.
type fakeBreaker struct {
	mu    sync.Mutex
	pulls int
	on    bool
	err   error
}

func (b *fakeBreaker) Pull(context.Context, string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulls++
	b.on = b.err == nil
	return b.err
}

func (b *fakeBreaker) On(context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on, b.err
}

// letGo returns when the alarm has noticed.
func (b *fakeBreaker) letGo() {
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
		cfg     activities.CircuitBreakerConfig
		want    bool
	}{
		"four failures of two reviews":       {[]ending{{"a", down}, {"b", down}, {"a", down}, {"b", down}}, activities.CircuitBreakerConfig{}, true},
		"four failures of four reviews":      {[]ending{{"a", down}, {"b", down}, {"c", down}, {"d", down}}, activities.CircuitBreakerConfig{}, true},
		"different words for it":             {[]ending{{"a", down}, {"b", failure.NetworkTimeout}, {"c", failure.RateLimited}, {"d", failure.UpstreamInternal}}, activities.CircuitBreakerConfig{}, true},
		"a review that fails alone":          {[]ending{{"a", down}, {"a", down}, {"a", down}, {"a", down}, {"a", down}}, activities.CircuitBreakerConfig{}, false},
		"a review that nobody answers":       {[]ending{{"a", away}, {"a", failure.NetworkUnreachable}}, activities.CircuitBreakerConfig{}, true},
		"one time without an answer":         {[]ending{{"a", away}, {"a", down}, {"a", down}}, activities.CircuitBreakerConfig{}, false},
		"an answer in between":               {[]ending{{"a", away}, {"b", ""}, {"a", away}}, activities.CircuitBreakerConfig{}, false},
		"more failures are asked for":        {[]ending{{"a", away}, {"a", away}}, activities.CircuitBreakerConfig{Failures: 5}, false},
		"three failures":                     {[]ending{{"a", down}, {"b", down}, {"c", down}}, activities.CircuitBreakerConfig{}, false},
		"a success in between":               {[]ending{{"a", down}, {"b", down}, {"c", down}, {"d", ""}, {"e", down}}, activities.CircuitBreakerConfig{}, false},
		"failures of the changes themselves": {[]ending{{"a", failure.TooLarge}, {"b", failure.ContentPolicy}, {"c", failure.SchemaInvalid}, {"d", failure.NotFound}}, activities.CircuitBreakerConfig{}, false},
		"two reviews refused":                {[]ending{{"a", refused}, {"b", refused}}, activities.CircuitBreakerConfig{}, true},
		"a review refused alone":             {[]ending{{"a", refused}, {"a", refused}, {"a", refused}, {"a", refused}}, activities.CircuitBreakerConfig{}, false},
		"a review refused, another failing":  {[]ending{{"a", refused}, {"b", down}}, activities.CircuitBreakerConfig{}, false},
		"no credit for two reviews":          {[]ending{{"a", failure.QuotaExhausted}, {"b", failure.QuotaExhausted}}, activities.CircuitBreakerConfig{}, true},
		"refusals that are to be ignored":    {[]ending{{"a", refused}, {"b", refused}, {"c", refused}, {"d", refused}}, activities.CircuitBreakerConfig{IgnoreDenied: true}, false},
		"fewer failures are asked for":       {[]ending{{"a", down}, {"b", down}}, activities.CircuitBreakerConfig{Failures: 2}, true},
		"more reviews are asked for":         {[]ending{{"a", down}, {"b", down}, {"a", down}, {"b", down}}, activities.CircuitBreakerConfig{Reviews: 3}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				breaker := &fakeBreaker{}
				alarm := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), tt.cfg, breaker)
				for _, e := range tt.endings {
					report(t, alarm, e)
				}
				if got := breaker.pulls > 0; got != tt.want {
					t.Errorf("breaker pulled: %t, want %t", got, tt.want)
				}
				breaker.letGo()
			})
		})
	}
}

func report(t *testing.T, alarm *activities.CircuitBreaker, e ending) {
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
		breaker := &fakeBreaker{}
		alarm := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{}, breaker)
		for _, review := range []string{"a", "b", "c", "d", "e", "f"} {
			alarm.Failed(t.Context(), review, failure.UpstreamUnavailable)
			time.Sleep(2 * time.Minute)
		}
		if breaker.pulls > 0 {
			t.Error("breaker pulled")
		}
	})
}

// What was already on its way to this process when the breaker was pulled waits.
func TestAttemptsWaitWhileTheBreakerIsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		breaker := &fakeBreaker{}
		alarm := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{Failures: 2}, breaker)
		if err := alarm.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
		alarm.Failed(t.Context(), "a", failure.UpstreamUnavailable)
		alarm.Failed(t.Context(), "b", failure.UpstreamUnavailable)

		stopping, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := alarm.Admit(stopping); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an attempt was admitted or ended with %v while the breaker was on", err)
		}
		breaker.letGo()
		if err := alarm.Admit(t.Context()); err != nil {
			t.Errorf("an attempt was not admitted when the breaker was off: %v", err)
		}
	})
}

// A breaker that cannot be pulled must not keep anybody waiting.
func TestAttemptsDoNotWaitForABreakerThatFails(t *testing.T) {
	t.Parallel()
	breaker := &fakeBreaker{err: errors.New("no Temporal")}
	alarm := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{Failures: 2}, breaker)
	alarm.Failed(t.Context(), "a", failure.UpstreamUnavailable)
	alarm.Failed(t.Context(), "b", failure.UpstreamUnavailable)
	if err := alarm.Admit(t.Context()); err != nil || breaker.pulls != 1 {
		t.Errorf("admitted with %v after %d pulls", err, breaker.pulls)
	}
}
