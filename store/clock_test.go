package store

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// A hanging server accepts connections, because its kernel does, and never answers.
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	url := "postgres://u@" + silent.Addr().String() + "/d"
	cfg, err := poolConfig(Config{URL: secret.New(url)}, "")
	if err != nil || cfg.ConnConfig.ConnectTimeout != 10*time.Second {
		t.Errorf("the limit is %s, %v", cfg.ConnConfig.ConnectTimeout, err)
	}
	_, err = Open(t.Context(), slog.New(slog.DiscardHandler), Config{URL: secret.New(url + "?connect_timeout=1")}, "")
	if failure.ClassOf(err) != failure.NetworkTimeout {
		t.Errorf("with a limit of 1 s: %v", err)
	}
}

// The age of an attempt does not depend on the difference between the clocks of worker
// and database: a worker whose clock is ahead would report a mail absent too soon
// (notification 8.2).
func TestAttemptIsTimedByOurClock(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{
		"the same": 0, "the database is ahead": 20 * time.Minute, "the database is behind": -20 * time.Minute,
	} {
		now := time.Now().Add(skew) // as the database says
		began := now.Add(-time.Minute)
		row := byOurClock(review.Delivery{LastAttemptAt: &began}, now)
		if age := time.Since(*row.LastAttemptAt); age < time.Minute-time.Second || age > 2*time.Minute {
			t.Errorf("%s: an attempt of a minute ago began %s ago", name, age)
		}
	}
	if row := byOurClock(review.Delivery{}, time.Now()); row.LastAttemptAt != nil {
		t.Errorf("a row without an attempt has one at %s", row.LastAttemptAt)
	}
}
