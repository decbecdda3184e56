// Package breaker is the circuit breaker of one task queue in one worker process. It stops
// the process's Temporal worker of the queue while the endpoint that the activities call
// fails for every review. Reviews then wait in Temporal and use no attempts.
//
//	closed ---- attempts of 3 reviews in a row fail ----> open
//	open ---- a probe of the endpoint succeeds ----> half-open: a worker with one slot
//	half-open ---- an attempt succeeds ----> closed: a worker with all slots
//	half-open ---- an attempt fails ----> open
//
// [gobreaker] keeps the state. It counts calls, so this package counts the reviews.
//
// [gobreaker]: https://pkg.go.dev/github.com/sony/gobreaker/v2
package breaker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/criticizer/criticizer/internal/failure"
)

// Reviews is how many reviews in a row open the breaker.
const Reviews = 3

const (
	// window is how long a failure counts.
	window = 5 * time.Minute
	// ProbeTimeout limits one probe.
	ProbeTimeout = time.Minute
	// seenEvery is how often the record of an outage is confirmed while no probe runs.
	seenEvery = time.Minute
)

// ErrOpen refuses an attempt that reaches the process while the breaker is open.
var ErrOpen = errors.New("the circuit breaker of the task queue is open")

// errNotCounted is the result of an attempt that does not show whether the endpoint works.
var errNotCounted = errors.New("not counted")

// An Outage is the time in which a breaker is not closed.
type Outage struct {
	Since  time.Time
	Class  failure.Class // of the last failure
	Reason string        // for people, scrubbed
	// HalfOpen is set while attempts are tried.
	HalfOpen bool
}

// A Worker is the part of a Temporal worker that a breaker uses.
type Worker interface {
	Start() error
	// Stop returns when the calls in flight have ended.
	Stop()
}

// A Config configures a [Breaker]. All fields are required.
type Config struct {
	Log *slog.Logger
	// Worker makes a worker of the queue: with one slot, or with all.
	Worker func(oneSlot bool) Worker
	// Probe checks that the endpoint responds, without a side effect.
	Probe func(context.Context) error
	// Pause is the time before probe n of an outage, from 1.
	Pause func(n int) time.Duration
	// Record shows the outage to operators; nil ends it. It is called again while the
	// outage lasts.
	Record func(context.Context, *Outage)
	// Scrub redacts the text of an error.
	Scrub func(string) string
}

// A Breaker is the circuit breaker of one task queue. It starts and stops the workers of the
// queue: it is one itself.
type Breaker struct {
	cfg   Config
	state *gobreaker.TwoStepCircuitBreaker[any]
	moved chan gobreaker.State // the newest state that the loop has not seen

	stop    context.CancelFunc
	running sync.WaitGroup

	// mu may be acquired while state is locked, not the other way round.
	mu       sync.Mutex
	admits   bool                 // attempts may begin
	failed   map[string]time.Time // reviews that have failed since the last success, with the last failure
	streak   time.Time            // the first of these failures
	closedAt time.Time            // end of the last outage
	outage   *Outage              // nil if closed
}

// New returns a closed breaker.
func New(cfg Config) *Breaker {
	b := &Breaker{cfg: cfg, moved: make(chan gobreaker.State, 1), admits: true, failed: map[string]time.Time{}}
	b.state = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests: 1,
		// An open breaker becomes half-open by a probe, not by time: admits is false until then.
		Timeout:       1,
		ReadyToTrip:   func(gobreaker.Counts) bool { return b.reviewsFailed() >= Reviews },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNotCounted) },
		OnStateChange: func(_ string, _, to gobreaker.State) { b.move(to) },
	})
	return b
}

// Begin begins an attempt for a review, or returns [ErrOpen]. The attempt must call end
// once. If provisional is true the failure is one of an outage: it is retried, whatever its
// class, and does not count against the attempt budget.
func (b *Breaker) Begin(review string) (end func(err error) (provisional bool), err error) {
	b.mu.Lock()
	admits := b.admits
	b.mu.Unlock()
	if !admits {
		return nil, ErrOpen
	}
	done, err := b.state.Allow()
	if err != nil {
		return nil, ErrOpen
	}
	began := time.Now()
	return func(err error) bool {
		counted, late := b.judge(review, began, err)
		done(counted)
		return failure.ScopeOf(err) == failure.ScopeEndpoint && (late || b.state.State() != gobreaker.StateClosed)
	}, nil
}

// judge returns what an attempt shows about the endpoint. late means that it began before
// the end of the last outage. A call that began before the endpoint broke can succeed later
// than the first failures: it does not prove that the endpoint works.
func (b *Breaker) judge(review string, began time.Time, err error) (counted error, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch late = began.Before(b.closedAt); {
	case late:
		return errNotCounted, true
	case err == nil && !began.Before(b.streak):
		clear(b.failed)
		b.streak = time.Time{}
		return nil, false
	case err == nil, failure.ScopeOf(err) != failure.ScopeEndpoint:
		return errNotCounted, false
	}
	now := time.Now()
	if len(b.failed) == 0 {
		b.streak = now
	}
	b.failed[review] = now
	outage := Outage{Since: now, Class: failure.ClassOf(err), Reason: b.cfg.Scrub(err.Error())}
	if b.outage != nil {
		outage.Since, outage.HalfOpen = b.outage.Since, b.outage.HalfOpen
		b.outage = &outage
	} else if b.countFailed(now) >= Reviews {
		b.outage = &outage
	}
	return err, false
}

func (b *Breaker) reviewsFailed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.countFailed(time.Now())
}

func (b *Breaker) countFailed(now time.Time) int {
	for review, at := range b.failed {
		if now.Sub(at) > window {
			delete(b.failed, review)
		}
	}
	return len(b.failed)
}

// move notifies the loop of a new state. It is called while state is locked.
func (b *Breaker) move(to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch to {
	case gobreaker.StateOpen:
		b.admits = false
	case gobreaker.StateClosed:
		clear(b.failed)
		b.streak, b.closedAt, b.outage = time.Time{}, time.Now(), nil
	default:
		return
	}
	select {
	case <-b.moved:
	default:
	}
	b.moved <- to
}

// Outage returns the outage; nil if the breaker is closed.
func (b *Breaker) Outage() *Outage {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage == nil {
		return nil
	}
	o := *b.outage
	return &o
}

// Start starts the worker of the queue.
func (b *Breaker) Start() error {
	w := b.cfg.Worker(false)
	if err := w.Start(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.run(ctx, w) })
	return nil
}

// Stop stops the worker of the queue and returns when the calls in flight have ended.
func (b *Breaker) Stop() {
	b.stop()
	b.running.Wait()
}

// run supervises the worker until ctx ends.
func (b *Breaker) run(ctx context.Context, w Worker) {
	for w != nil {
		select {
		case <-ctx.Done():
			w.Stop()
			return
		case <-b.moved:
			b.cfg.Log.WarnContext(ctx, "circuit breaker opened", "error_class", string(b.Outage().Class), "reason", b.Outage().Reason)
			b.running.Go(w.Stop)
			w = b.waitOut(ctx)
		}
	}
}

// waitOut waits for the end of an outage and returns the worker with all slots that it has
// started; nil if ctx ends.
func (b *Breaker) waitOut(ctx context.Context) Worker {
	for n := 1; ; n++ {
		b.show(ctx, false)
		if !sleep(ctx, b.cfg.Pause(n)) {
			return nil
		}
		if err := b.probe(ctx); err != nil {
			b.cfg.Log.InfoContext(ctx, "circuit breaker stays open", "probe", n, "error", b.cfg.Scrub(err.Error()))
			continue
		}
		single := b.started(ctx, true)
		if single == nil {
			return nil
		}
		b.show(ctx, true)
		closed := b.tryOne(ctx)
		b.running.Go(single.Stop)
		if ctx.Err() != nil {
			return nil
		}
		if closed {
			b.cfg.Record(ctx, nil)
			b.cfg.Log.InfoContext(ctx, "circuit breaker closed")
			return b.started(ctx, false)
		}
	}
}

// started starts a worker, as soon as Temporal can be reached; nil if ctx ends.
func (b *Breaker) started(ctx context.Context, oneSlot bool) Worker {
	for n := 1; ; n++ {
		w := b.cfg.Worker(oneSlot)
		err := w.Start()
		if err == nil {
			return w
		}
		b.cfg.Log.WarnContext(ctx, "worker not started", "error", b.cfg.Scrub(err.Error()))
		if !sleep(ctx, b.cfg.Pause(n)) {
			return nil
		}
	}
}

func (b *Breaker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	return b.cfg.Probe(ctx)
}

// tryOne lets attempts begin, one at a time, and reports whether one has succeeded. It
// returns when one has failed, or when ctx ends.
func (b *Breaker) tryOne(ctx context.Context) (closed bool) {
	b.mu.Lock()
	b.admits = true
	b.mu.Unlock()
	tick := time.NewTicker(seenEvery)
	defer tick.Stop()
	for {
		select {
		case to := <-b.moved:
			return to == gobreaker.StateClosed
		case <-tick.C:
			b.show(ctx, true)
		case <-ctx.Done():
			return false
		}
	}
}

// show records the outage.
func (b *Breaker) show(ctx context.Context, halfOpen bool) {
	b.mu.Lock()
	if b.outage != nil {
		b.outage.HalfOpen = halfOpen
	}
	b.mu.Unlock()
	if o := b.Outage(); o != nil {
		b.cfg.Record(ctx, o)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
