package e2e

import (
	"sync"
	"time"
)

// A trigger injects the faults of one review in order. Proxies report every moment.
type trigger struct {
	// The hooks carry out actions that no proxy can. All but freeze are synchronous;
	// freeze returns a channel that is closed at its end.
	kill            func()
	stop            func()
	freeze          func(time.Duration) (over <-chan struct{})
	restartPostgres func()
	restartTemporal func()
	reset           func()

	mu     sync.Mutex
	faults []fault
	skip   int // moments to ignore before the first fault
	fired  bool
	down   time.Time         // a server is unreachable until then
	frozen []<-chan struct{} // closed when a worker has resumed
}

// arm sets the faults of the next review, after the outages of the last one.
func (t *trigger) arm(faults []fault, skip int) {
	t.mu.Lock()
	down := t.down
	t.mu.Unlock()
	time.Sleep(time.Until(down))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults, t.skip, t.fired = faults, skip, false
}

// done reports whether all faults have been injected. It waits for what continues after
// the review: the end of the SMTP session, and a frozen worker.
func (t *trigger) done() bool {
	poll(5*time.Second, 50*time.Millisecond, t.reached)
	t.mu.Lock()
	frozen := t.frozen
	t.frozen = nil
	t.mu.Unlock()
	for _, over := range frozen {
		<-over
	}
	return t.reached()
}

func (t *trigger) reached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fired && len(t.faults) == 0
}

// at returns the action of a moment, after the hooks have carried out their part.
func (t *trigger) at(moment string) action {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.faults) == 0 || t.faults[0].moment != moment {
		return action{}
	}
	if t.skip > 0 {
		t.skip--
		return action{}
	}
	a := t.faults[0].action
	t.faults, t.fired = t.faults[1:], true
	switch a.kind {
	case actKill:
		t.kill()
	case actStop:
		t.stop()
	case actFreeze:
		t.frozen = append(t.frozen, t.freeze(a.during))
	case actRestartPostgres:
		t.restartPostgres()
	case actRestartTemporal:
		t.restartTemporal()
	case actReset:
		t.reset()
	case actDown:
		t.down = time.Now().Add(a.during)
	}
	return a
}
