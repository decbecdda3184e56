package chaos

import (
	"sync"
	"time"
)

// A trap waits for the strikes of one review. Proxies tell it of every moment.
type trigger struct {
	// The hooks carry out what no proxy can. All but freeze have done so when
	// they return; freeze says when it is over.
	kill            func()
	stop            func()
	freeze          func(time.Duration) (over <-chan struct{})
	restartPostgres func()
	restartTemporal func()
	reset           func()

	mu     sync.Mutex
	faults []fault
	skip   int // moments to let pass before the first strike
	fired  bool
	down   time.Time         // a server is out of reach until then
	frozen []<-chan struct{} // closed when a worker is thawed
}

// set arms the trap, once everything that it has put out of reach is back.
func (t *trigger) arm(strikes []fault, skip int) {
	t.mu.Lock()
	back := t.down
	t.mu.Unlock()
	time.Sleep(time.Until(back))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults, t.skip, t.fired = strikes, skip, false
}

// done reports whether all strikes have struck, and waits for what goes on
// after the review: the goodbye to the mail server, and a worker that is frozen.
func (t *trigger) done() bool {
	const patience = 5 * time.Second
	for deadline := time.Now().Add(patience); !t.reached() && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
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

// at is called at a moment and says what is to happen. What the hooks do has
// happened when it returns.
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
