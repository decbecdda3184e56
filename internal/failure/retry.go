package failure

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	// AttemptBudget is the number of attempts of a stage, the first included
	// (processing 8.3).
	AttemptBudget = 5
	// DelayCeiling limits the delay that an endpoint can ask for (processing 8.2).
	DelayCeiling = 5 * time.Minute
	// minimumDelay is above zero: Temporal reads zero as unset.
	minimumDelay = time.Millisecond
)

// The delay after failed attempt n is at most InitialDelay * DelayMultiplier^(n-1), and at
// most MaxDelay (processing 8.2).
const (
	InitialDelay    = time.Second
	DelayMultiplier = 2.0
	MaxDelay        = 60 * time.Second
)

// Backoff is the delay after the given failed attempt (from 1): full jitter, or what the
// endpoint asked for if that is longer, up to [DelayCeiling] (processing 8.2). u is a
// random number in [0, 1), drawn for every attempt.
func Backoff(attempt int, u float64, retryAfter time.Duration) time.Duration {
	limit := math.Min(float64(MaxDelay), float64(InitialDelay)*math.Pow(DelayMultiplier, float64(attempt-1)))
	delay := max(time.Duration(u*limit), minimumDelay)
	return min(max(delay, retryAfter), DelayCeiling)
}

// RetryAfter returns the delay that a server asks for in the header Retry-After-Ms,
// or in Retry-After as seconds or as an HTTP date. The larger one counts; zero means
// that no header is valid.
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

// seconds converts s without overflow. A delay over the ceiling becomes the ceiling,
// and an invalid one zero.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Min(s, DelayCeiling.Seconds()) * float64(time.Second))
}
