package failure

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// The retry policy of criticizer-processing 8.2 and the budget of 8.3.
const (
	InitialDelay   = time.Second
	Multiplier     = 2.0
	MaxDelay       = 60 * time.Second
	DelayCeiling   = 5 * time.Minute // for delays the other side asks for
	AttemptBudget  = 5               // attempts of a stage, the first included
	minimumBackoff = time.Millisecond
)

// Backoff is the delay after the given failed attempt (from 1): full jitter,
// max'ed with what the other side asked for, under the ceiling
// (criticizer-processing 8.2). u is a random number in [0, 1), drawn anew for
// every attempt. The result is at least 1 ms, as Temporal reads zero as unset.
func Backoff(attempt int, u float64, retryAfter time.Duration) time.Duration {
	limit := math.Min(float64(MaxDelay), float64(InitialDelay)*math.Pow(Multiplier, float64(attempt-1)))
	delay := max(time.Duration(u*limit), minimumBackoff)
	return min(max(delay, retryAfter), DelayCeiling)
}

// RetryAfter reads how long a server asked to wait: retry-after-ms, or
// Retry-After in seconds or as an HTTP date; the larger wins. Zero if the
// headers say nothing that can be read.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		wait = seconds(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return max(wait, seconds(s))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(wait, seconds(at.Sub(now).Seconds()))
	}
	return wait
}

// seconds converts without overflow: a wait beyond the ceiling is the ceiling,
// nonsense is nothing.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Min(s, DelayCeiling.Seconds()) * float64(time.Second))
}
