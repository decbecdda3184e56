// Package cputest compares the processor time of functions in tests. Other programs on
// the machine change it little, unlike the time on the clock.
package cputest

import (
	"testing"
	"time"
)

// Linear fails the test if large takes most times as long as small, or longer, in each of
// four tries. If small takes less than floor, floor is used: shorter times cannot be
// measured well.
func Linear(tb testing.TB, most int, floor time.Duration, small, large func()) {
	tb.Helper()
	const tries = 4
	var few, many time.Duration
	for range tries {
		few, many = Time(small), Time(large)
		if many < time.Duration(most)*max(few, floor) {
			return
		}
	}
	tb.Errorf("the small work takes %s, the large one %s: want less than %d times as much", few, many, most)
}
