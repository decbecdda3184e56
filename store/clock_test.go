package store

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/review"
)

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
