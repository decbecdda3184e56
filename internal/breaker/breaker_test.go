package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A queue is a task queue of Temporal with its retries, and the endpoint that its tasks call.
type queue struct {
	b      *Breaker
	atOnce int
	broken atomic.Pointer[failure.Error] // what each call returns; nil if the endpoint works
	probe  atomic.Pointer[failure.Error]
	calls  atomic.Int64
	inCall atomic.Int64 // calls in flight

	waiting chan *task

	mu      sync.Mutex
	done    int
	letters int
	records []*Outage
}

type task struct {
	review   string
	attempts int // that count
}

// callTime is how long a call takes.
const callTime = 10 * time.Second

// newQueue returns a queue with reviews waiting, and starts its workers.
func newQueue(t *testing.T, reviews, atOnce int) *queue {
	t.Helper()
	q := &queue{atOnce: atOnce, waiting: make(chan *task, 1000)}
	for n := range reviews {
		q.waiting <- &task{review: fmt.Sprint("review-", n)}
	}
	q.b = New(Config{
		Log: slog.New(slog.DiscardHandler), Scrub: func(s string) string { return s },
		Worker: func(oneSlot bool) Worker {
			slots := atOnce
			if oneSlot {
				slots = 1
			}
			return &worker{q: q, slots: slots, stopped: make(chan struct{})}
		},
		Probe: func(context.Context) error { return asError(q.probe.Load()) },
		Pause: func(n int) time.Duration { return failure.Backoff(n, 0.5, 0) },
		Record: func(_ context.Context, o *Outage) {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.records = append(q.records, o)
		},
	})
	return q
}

func asError(e *failure.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// breakWith makes calls and probes fail; nil repairs both.
func (q *queue) breakWith(call, probe *failure.Error) {
	q.broken.Store(call)
	q.probe.Store(probe)
}

// A worker runs tasks until it is stopped; calls in flight end.
type worker struct {
	q       *queue
	slots   int
	stopped chan struct{}
	running sync.WaitGroup
}

func (w *worker) Start() error {
	for range w.slots {
		w.running.Go(func() {
			for {
				select {
				case <-w.stopped:
					return
				default:
				}
				select {
				case <-w.stopped:
					return
				case next := <-w.q.waiting:
					w.q.run(next)
				}
			}
		})
	}
	return nil
}

func (w *worker) Stop() { close(w.stopped); w.running.Wait() }

// run makes one attempt, as the interceptor and the workflow do.
func (q *queue) run(t *task) {
	end, err := q.b.Begin(t.review)
	if err != nil {
		q.retry(t, 1)
		return
	}
	q.calls.Add(1)
	q.inCall.Add(1)
	time.Sleep(callTime)
	q.inCall.Add(-1)
	failed := q.broken.Load()
	provisional := end(asError(failed))
	if failed == nil {
		q.mu.Lock()
		q.done++
		q.mu.Unlock()
		return
	}
	if !provisional {
		t.attempts++
	}
	if !provisional && (!failure.Retryable(failed) || t.attempts >= failure.AttemptBudget) {
		q.mu.Lock()
		q.letters++
		q.mu.Unlock()
		return
	}
	q.retry(t, t.attempts+1)
}

// counts returns how many reviews have succeeded and were dead-lettered, and the last record.
func (q *queue) counts() (done, letters int, last *Outage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.records); n > 0 {
		last = q.records[n-1]
	}
	return q.done, q.letters, last
}

func (q *queue) retry(t *task, attempt int) {
	time.AfterFunc(failure.Backoff(attempt, 0.5, 0), func() { q.waiting <- t })
}

// The failures that meet every review, in the words of their adapters.
var outages = map[string]*failure.Error{
	"the endpoint is down":            failure.Errorf(failure.NetworkUnreachable, "connection refused"),
	"it answers 503":                  failure.Errorf(failure.UpstreamUnavailable, "503"),
	"it answers too late":             failure.Errorf(failure.NetworkTimeout, "no answer"),
	"the key is refused":              failure.Errorf(failure.AuthDenied, "401"),
	"the quota is used up":            failure.Errorf(failure.QuotaExhausted, "429"),
	"the server has another key":      failure.Errorf(failure.ConfigInvalid, "the key of the server is not in p4trust"),
	"the licence has expired":         failure.Errorf(failure.PermissionDenied, "licence expired"),
	"the sender is refused":           failure.Errorf(failure.PermissionDenied, "550 5.7.1"),
	"every answer is unusable":        failure.Errorf(failure.SchemaInvalid, "no JSON"),
	"a refusal without a class":       failure.Errorf(failure.EndpointRefused, "400"),
	"an error that nobody classified": failure.Errorf(failure.Unknown, "odd"),
}

// 100 reviews wait, 64 run at once, and the endpoint breaks while calls are in flight: at
// most 3 reviews are dead-lettered, and all others end after the repair. That also holds if
// probes succeed while calls fail, for a day.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, failed := range outages {
		for _, probed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, probes notice it: %t", name, probed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testOutage(t, failed, probed) })
			})
		}
	}
}

func testOutage(t *testing.T, failed *failure.Error, probed bool) {
	const reviews = 164
	q := newQueue(t, reviews, 64)
	if err := q.b.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(callTime + callTime/2) // 64 have succeeded, 64 are in flight
	probe := failed
	if !probed {
		probe = nil
	}
	q.breakWith(failed, probe)
	time.Sleep(24 * time.Hour)
	before := q.calls.Load()
	if _, letters, _ := q.counts(); q.b.Outage() == nil || letters > 3 {
		t.Errorf("the outage is %v, %d dead letters", q.b.Outage(), letters)
	}
	if probed && before > 3*64 {
		t.Errorf("%d calls of a broken endpoint", before)
	}
	q.breakWith(nil, nil)
	time.Sleep(30 * time.Minute)
	done, letters, last := q.counts()
	if done+letters != reviews || letters > 3 {
		t.Errorf("%d of %d reviews have succeeded, %d dead letters", done, reviews, letters)
	}
	if last != nil || q.b.Outage() != nil {
		t.Errorf("the breaker is not closed: %v, recorded %v", q.b.Outage(), last)
	}
	q.b.Stop()
}

// What certainly comes from one change or recipient never opens the breaker, however often.
// Every other class does, after three reviews.
func TestScopes(t *testing.T) {
	t.Parallel()
	for _, d := range failure.Descriptions() {
		b := newQueue(t, 0, 1).b
		for n := range 20 {
			if end, err := b.Begin(fmt.Sprint("review-", n)); err == nil {
				end(failure.Errorf(d.Class, "failed"))
			}
		}
		if open := b.Outage() != nil; open != (d.Scope == failure.ScopeEndpoint) {
			t.Errorf("%s, scope %s: open %t", d.Class, d.Scope, open)
		}
	}
}

// One review that fails alone uses its attempts; a success between two failures, if it began
// after the first, shows that the endpoint works.
func TestFewFailuresDoNotOpen(t *testing.T) {
	t.Parallel()
	down := failure.Errorf(failure.UpstreamUnavailable, "503")
	for name, ends := range map[string][]struct {
		review string
		err    error
	}{
		"one review, many times":  {{"1", down}, {"1", down}, {"1", down}, {"1", down}, {"1", down}},
		"two reviews":             {{"1", down}, {"2", down}, {"1", down}, {"2", down}},
		"successes between":       {{"1", down}, {"2", down}, {"3", nil}, {"4", down}, {"5", down}},
		"an unwrapped timeout":    {{"1", context.DeadlineExceeded}, {"2", context.DeadlineExceeded}},
		"changes that are denied": {{"1", failure.Errorf(failure.PathNotAllowed, "no")}, {"2", failure.Errorf(failure.PathNotAllowed, "no")}, {"3", failure.Errorf(failure.PathNotAllowed, "no")}},
	} {
		b := newQueue(t, 0, 1).b
		for _, e := range ends {
			end, err := b.Begin(e.review)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if end(e.err) {
				t.Errorf("%s: a failure does not count", name)
			}
		}
		if o := b.Outage(); o != nil {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// Calls in flight when the breaker opens run to their end, and their failures do not count;
// none begins until a probe has succeeded.
func TestCallsInFlightEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 100, 64)
		q.breakWith(outages["the key is refused"], outages["the key is refused"])
		if err := q.b.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*callTime + time.Second) // the first two failures free a slot each
		if _, letters, _ := q.counts(); q.inCall.Load() != 0 || q.calls.Load() > 64+Reviews-1 || letters > Reviews-1 {
			t.Errorf("%d calls, %d in flight, %d dead letters", q.calls.Load(), q.inCall.Load(), letters)
		}
		if _, err := q.b.Begin("another"); !errors.Is(err, ErrOpen) {
			t.Errorf("an attempt of an open breaker begins: %v", err)
		}
		if o := q.b.Outage(); o == nil || o.HalfOpen || o.Class != failure.AuthDenied || o.Reason != "401" {
			t.Errorf("the outage is %v", o)
		}
		q.b.Stop()
	})
}
