package workflows

import (
	"cmp"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

const (
	// lowestRate is the rate per second below which a throttled queue is stopped.
	lowestRate = 0.05
	// fullLevel is the number of activities after whose success a breaker closes.
	fullLevel = 16
	// quietPaces and the others are waiting times, in paces of 10 seconds.
	quietPaces   = 6
	idlePaces    = 1
	silencePaces = 30
	// maxReports limits the history of reports, which is part of the workflow's input.
	maxReports = 100
)

// add adds a report to the results, and forgets those that the window does not cover.
func (b *breaker) add(now time.Time, r activities.Results) {
	b.Seen.Add(r)
	b.Rules = r.Rules
	r.At = now
	b.Recent = append(b.Recent, r)
	total := b.total().Decisive()
	for len(b.Recent) > 1 {
		oldest := b.Recent[0]
		if now.Sub(oldest.At) < failure.DelayCeiling && total-oldest.Decisive() < r.Rules.Window && len(b.Recent) <= maxReports {
			break
		}
		total -= oldest.Decisive()
		b.Recent = b.Recent[1:]
	}
}

func (b *breaker) total() (total activities.Results) {
	for _, r := range b.Recent {
		total.Add(r)
	}
	return total
}

// throughput is how many activities began per second.
func (b *breaker) throughput(now time.Time, total activities.Results) float64 {
	return float64(total.Begun) / max(1, now.Sub(b.Recent[0].At).Seconds())
}

// failed reports whether too many activities of phase half-open failed, and answered how
// many have ended.
func (b *breaker) failed() bool {
	bad := float64(b.Seen.Bad())
	return bad > 0 && bad >= b.Rules.Ratio*float64(b.Level)
}

func (b *breaker) answered() int { return b.Seen.Decisive() + b.Seen.Other }

func (b *breaker) interrupted() bool { return b.Next != nil || b.Closing }

// pace is the time between two adjustments.
func (b *breaker) pace() time.Duration {
	return cmp.Or(b.Rules.Pace, 10*time.Second)
}
