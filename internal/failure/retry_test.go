package failure

import (
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// limits holds the largest delay after each attempt (processing 8.2).
var limits = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
	16 * time.Second, 32 * time.Second, 60 * time.Second, 60 * time.Second,
}

// Full jitter: delays are uniform on [0, limit] (processing 8.2). The
// Kolmogorov-Smirnov distance of n samples stays under 1.95/sqrt(n) in 999 of
// 1000 runs, and the seed is fixed; other jitter (equal, decorrelated, none) has a
// distance of 0.25 and more.
func TestBackoffIsFullJitter(t *testing.T) {
	t.Parallel()
	const n = 20_000
	random := rand.New(rand.NewPCG(8, 2))
	for i, limit := range limits {
		samples := make([]float64, n)
		for j := range samples {
			samples[j] = float64(Backoff(i+1, random.Float64(), 0)) / float64(limit)
		}
		if d := distanceToUniform(samples); d > 1.95/math.Sqrt(n) {
			t.Errorf("delays after attempt %d are not uniform up to %s: distance %.4f", i+1, limit, d)
		}
	}
}

// distanceToUniform is the Kolmogorov-Smirnov distance between the samples and
// the uniform distribution on [0, 1].
func distanceToUniform(samples []float64) float64 {
	slices.Sort(samples)
	n, distance := float64(len(samples)), 0.0
	for i, x := range samples {
		distance = max(distance, float64(i+1)/n-x, x-float64(i)/n)
	}
	return distance
}

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	almostOne := math.Nextafter(1, 0)
	for i, limit := range limits {
		attempt := i + 1
		if got := Backoff(attempt, 0, 0); got != time.Millisecond {
			t.Errorf("shortest delay after attempt %d is %s, want 1ms: Temporal reads 0 as unset", attempt, got)
		}
		if got := Backoff(attempt, almostOne, 0); got > limit || got < limit-time.Millisecond {
			t.Errorf("longest delay after attempt %d is %s, want %s", attempt, got, limit)
		}
	}
	for _, attempt := range []int{100, 5000, math.MaxInt} {
		if got := Backoff(attempt, almostOne, 0); got > MaxDelay || got < MaxDelay-time.Millisecond {
			t.Errorf("longest delay after attempt %d is %s, want %s", attempt, got, MaxDelay)
		}
	}
}

// The larger of backoff and Retry-After counts, up to 5 minutes (processing 8.2.2).
func TestBackoffHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retryAfter, want time.Duration
	}{
		"a larger one wins":      {90 * time.Second, 90 * time.Second},
		"a smaller one loses":    {time.Second, 8 * time.Second},
		"none":                   {0, 8 * time.Second},
		"a negative one is none": {-time.Hour, 8 * time.Second},
		"the ceiling itself":     {5 * time.Minute, 5 * time.Minute},
		"over the ceiling":       {time.Hour, 5 * time.Minute},
		"the largest value":      {math.MaxInt64, 5 * time.Minute},
	} {
		if got := Backoff(5, 0.5, tt.retryAfter); got != tt.want {
			t.Errorf("%s: delay is %s, want %s", name, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		seconds, millis string
		want            time.Duration
	}{
		"no header":           {"", "", 0},
		"seconds":             {"30", "", 30 * time.Second},
		"milliseconds":        {"", "1500", 1500 * time.Millisecond},
		"milliseconds larger": {"1", "2500", 2500 * time.Millisecond},
		"seconds larger":      {"3", "2500", 3 * time.Second},
		"date":                {date(90 * time.Second), "", 90 * time.Second},
		"date before now":     {date(-time.Hour), "", 0},
		"date of RFC 850":     {now.Add(time.Minute).Format(time.RFC850), "", time.Minute},
		"date far away":       {"Fri, 31 Dec 9999 23:59:59 GMT", "", DelayCeiling},
		"negative":            {"-5", "", 0},
		"huge":                {"99999999999999999999", "", DelayCeiling},
		"beyond any number":   {"1e999", "", 0},
		"infinite":            {"Inf", "", DelayCeiling},
		"not a number":        {"NaN", "", 0},
		"invalid":             {"soon", "", 0},
		"an invalid header does not hide the other": {"soon", "250", 250 * time.Millisecond},
	} {
		h := http.Header{}
		if tt.seconds != "" {
			h.Set("Retry-After", tt.seconds)
		}
		if tt.millis != "" {
			h.Set("Retry-After-Ms", tt.millis)
		}
		if got := RetryAfter(h, now); got != tt.want {
			t.Errorf("%s: wait is %s, want %s", name, got, tt.want)
		}
	}
}
