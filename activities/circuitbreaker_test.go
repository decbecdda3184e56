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

// A fakeQueue has a circuit breaker that counts how often it was opened, and stays open
// until close.
type fakeQueue struct {
	mu    sync.Mutex
	opens int
	open  bool
	err   error
}

func (b *fakeQueue) Open(context.Context, string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opens++
	b.open = b.err == nil
	return b.err
}

func (b *fakeQueue) IsOpen(context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.err
}

// close returns when the circuit breaker has polled the new state.
func (b *fakeQueue) close() {
	b.mu.Lock()
	b.open = false
	b.mu.Unlock()
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// An ending is how an attempt of a review ended; without a class it succeeded.
type ending struct {
	review string
	class  failure.Class
}

func TestBreakerOpensOnAnOutage(t *testing.T) {
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
		"a review without a response":        {[]ending{{"a", away}, {"a", failure.NetworkUnreachable}}, activities.CircuitBreakerConfig{}, true},
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
				queue := &fakeQueue{}
				breaker := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), tt.cfg, queue)
				for _, e := range tt.endings {
					report(t, breaker, e)
				}
				if got := queue.opens > 0; got != tt.want {
					t.Errorf("opened: %t, want %t", got, tt.want)
				}
				queue.close()
			})
		})
	}
}

func report(t *testing.T, breaker *activities.CircuitBreaker, e ending) {
	t.Helper()
	if e.class == "" {
		breaker.RecordSuccess()
		return
	}
	breaker.RecordFailure(t.Context(), e.review, e.class)
}

// Failures with long gaps between them are not an outage.
func TestOldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := &fakeQueue{}
		breaker := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{}, queue)
		for _, review := range []string{"a", "b", "c", "d", "e", "f"} {
			breaker.RecordFailure(t.Context(), review, failure.UpstreamUnavailable)
			time.Sleep(2 * time.Minute)
		}
		if queue.opens > 0 {
			t.Error("opened")
		}
	})
}

// An attempt that was dispatched to this process before the queue stopped waits.
func TestAttemptsWaitWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := &fakeQueue{}
		breaker := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{Failures: 2}, queue)
		if err := breaker.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		breaker.RecordFailure(t.Context(), "a", failure.UpstreamUnavailable)
		breaker.RecordFailure(t.Context(), "b", failure.UpstreamUnavailable)

		stopping, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := breaker.Wait(stopping); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an attempt began, or ended with %v, while the breaker was open", err)
		}
		queue.close()
		if err := breaker.Wait(t.Context()); err != nil {
			t.Errorf("an attempt did not begin after the breaker closed: %v", err)
		}
	})
}

func TestAttemptsDoNotWaitIfTheBreakerCannotOpen(t *testing.T) {
	t.Parallel()
	queue := &fakeQueue{err: errors.New("no Temporal")}
	breaker := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), activities.CircuitBreakerConfig{Failures: 2}, queue)
	breaker.RecordFailure(t.Context(), "a", failure.UpstreamUnavailable)
	breaker.RecordFailure(t.Context(), "b", failure.UpstreamUnavailable)
	if err := breaker.Wait(t.Context()); err != nil || queue.opens != 1 {
		t.Errorf("ended with %v after %d tries to open", err, queue.opens)
	}
}
