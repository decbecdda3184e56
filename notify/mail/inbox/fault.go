package inbox

import (
	"cmp"
	"slices"
	"sync"

	"github.com/emersion/go-smtp"
)

// A Stage is a point of an SMTP transaction at which a fault can occur.
type Stage string

// The stages, in the order of a transaction.
const (
	StageRcpt Stage = "rcpt" // at RCPT
	StageBody Stage = "body" // before the message is read
	StageDot  Stage = "dot"  // the message was read and is not stored yet
	StageKept Stage = "kept" // the message is stored, and the sender has no answer yet
)

// A Fault makes a stage of coming transactions fail. It answers with Code, or
// waits for the end of Wait and continues normally, or, with neither of them, closes
// the connection.
type Fault struct {
	Stage Stage
	// Code and Enhanced are the reply, such as 550 and {5, 1, 1}.
	Code     int
	Enhanced [3]int
	Wait     func()
	// Times is how often the fault occurs. Default: once.
	Times int
}

// faults are the faults that have not occurred yet. Safe for concurrent use.
type faults struct {
	mu      sync.Mutex
	pending []Fault
}

// Inject adds a fault, after those injected before.
func (b *Inbox) Inject(f Fault) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	f.Times = cmp.Or(f.Times, 1)
	b.faults.pending = append(b.faults.pending, f)
}

// ClearFaults removes all faults.
func (b *Inbox) ClearFaults() {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.pending = nil
}

// take uses up one occurrence of the first fault of the stage.
func (fs *faults) take(at Stage) (Fault, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	i := slices.IndexFunc(fs.pending, func(f Fault) bool { return f.Stage == at })
	if i < 0 {
		return Fault{}, false
	}
	f := fs.pending[i]
	if fs.pending[i].Times--; fs.pending[i].Times == 0 {
		fs.pending = slices.Delete(fs.pending, i, i+1)
	}
	return f, true
}

// fail applies the next fault of the stage, if there is one, and returns the
// reply to send. The reply after a closed connection reaches no client.
func (s *session) fail(at Stage) error {
	f, ok := s.inbox.faults.take(at)
	switch {
	case !ok:
		return nil
	case f.Code != 0:
		return &smtp.SMTPError{Code: f.Code, EnhancedCode: smtp.EnhancedCode(f.Enhanced), Message: "injected fault"}
	case f.Wait != nil:
		f.Wait()
		return nil
	}
	_ = s.conn.Close()
	return errClosing
}
