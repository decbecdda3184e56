package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/criticizer/criticizer/failure"
)

// An Alarm watches how the attempts of one stage end in this process, and rings
// when what the stage talks to fails for everyone: a row of failures of several
// reviews, with no success in between. A review that fails alone never rings it.
type Alarm struct {
	lg   *slog.Logger
	cfg  AlarmConfig
	ring func(ctx context.Context, reason string) error
	now  func() time.Time

	mu  sync.Mutex
	row []strike // failures since the last success, oldest first
}

// AlarmConfig says when an [Alarm] rings.
type AlarmConfig struct {
	// Failures in a row that ring it. Default: 4, for an attempt budget of 5.
	Failures int
	// Reviews that must be among them. Default: 2.
	Reviews int
	// IgnoreDenied leaves refused credentials and used-up quota out. Otherwise
	// they ring the alarm as soon as enough reviews met them, for each of them is
	// dead-lettered at once.
	IgnoreDenied bool
}

// A strike is one failure that speaks of the endpoint.
type strike struct {
	workflowID string
	class      failure.Class
	at         time.Time
}

// NewAlarm returns an alarm that calls ring, with a reason for people, before
// the failure that rings it is reported.
func NewAlarm(lg *slog.Logger, cfg AlarmConfig, ring func(ctx context.Context, reason string) error) *Alarm {
	if cfg.Failures == 0 {
		cfg.Failures = 4
	}
	if cfg.Reviews == 0 {
		cfg.Reviews = 2
	}
	return &Alarm{lg: lg, cfg: cfg, ring: ring, now: time.Now}
}

// Succeeded ends the row of failures.
func (a *Alarm) Succeeded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.row = nil
}

// Failed adds a failure, and rings if that makes an outage.
func (a *Alarm) Failed(ctx context.Context, workflowID string, class failure.Class) {
	reason, outage := a.add(strike{workflowID, class, a.now()})
	if !outage {
		return
	}
	a.lg.WarnContext(ctx, "endpoint fails for everyone", "reason", reason)
	if err := a.ring(ctx, reason); err != nil {
		a.lg.ErrorContext(ctx, "outage could not be reported", "error", err)
	}
}

// forgetAfter is how long a failure counts: the longest wait between attempts.
const forgetAfter = failure.DelayCeiling

// add says whether s makes an outage; the row then begins anew.
func (a *Alarm) add(s strike) (reason string, outage bool) {
	if !blamesEndpoint(s.class) && (a.cfg.IgnoreDenied || !isDenial(s.class)) {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.row) > 0 && s.at.Sub(a.row[0].at) > forgetAfter {
		a.row = a.row[1:]
	}
	a.row = append(a.row, s)
	reviews, denied := map[string]bool{}, map[string]bool{}
	for _, one := range a.row {
		reviews[one.workflowID] = true
		if isDenial(one.class) {
			denied[one.workflowID] = true
		}
	}
	if len(denied) < a.cfg.Reviews && (len(reviews) < a.cfg.Reviews || len(a.row) < a.cfg.Failures) {
		return "", false
	}
	reason = fmt.Sprintf("%d failures of %d reviews in a row, the last %s", len(a.row), len(reviews), s.class)
	a.row = nil
	return reason, true
}

// blamesEndpoint reports whether a failure may be that of any review, whatever
// its change.
func blamesEndpoint(c failure.Class) bool {
	switch c {
	case failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable, failure.UpstreamInternal,
		failure.DatabaseUnavailable, failure.RateLimited, failure.ServerBusy:
		return true
	}
	return false
}

func isDenial(c failure.Class) bool { return c == failure.AuthDenied || c == failure.QuotaExhausted }
