package inbox

import (
	"cmp"
	"io"
	"net"
	"slices"

	"github.com/emersion/go-smtp"
)

// A session is one SMTP connection.
type session struct {
	inbox *Inbox
	conn  net.Conn
	from  string
	to    []string
}

// Mail implements [smtp.Session].
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

// Rcpt implements [smtp.Session].
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return s.fail(AtRcpt)
}

// Data implements [smtp.Session]. A nil error means that the message is on disk.
func (s *session) Data(r io.Reader) error {
	end, err := s.inbox.store.begin()
	if err != nil {
		return errClosing
	}
	defer end()
	if err := s.fail(AtBody); err != nil {
		return err
	}
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.fail(AtDot); err != nil {
		return err
	}
	id, err := s.inbox.store.add(s.from, s.to, message)
	if err != nil {
		s.inbox.lg.Error("mail could not be stored", "error", err)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "the message could not be stored"}
	}
	s.inbox.lg.Info("mail stored", "id", id, "bytes", len(message))
	return s.fail(AtKept)
}

// Reset implements [smtp.Session].
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout implements [smtp.Session].
func (s *session) Logout() error { return nil }

var errClosing = &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "the inbox is stopping"}

// A Point is a point of an SMTP transaction at which a fault can occur.
type Point string

// The points, in the order of a transaction.
const (
	AtRcpt Point = "rcpt" // at RCPT
	AtBody Point = "body" // before the message is read
	AtDot  Point = "dot"  // the message was read and is not stored yet
	AtKept Point = "kept" // the message is stored, and the sender has no answer yet
)

// A Fault makes a point of coming transactions fail. It answers with Code, or
// waits for the end of Wait and continues normally, or, with neither of them, closes
// the connection.
type Fault struct {
	At Point
	// Code and Enhanced are the reply, such as 550 and {5, 1, 1}.
	Code     int
	Enhanced [3]int
	Wait     func()
	// Times is how often the fault occurs. Default: once.
	Times int
}

// Inject adds a fault, after those injected before.
func (b *Inbox) Inject(f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.Times = cmp.Or(f.Times, 1)
	b.faults = append(b.faults, f)
}

// ClearFaults removes all faults.
func (b *Inbox) ClearFaults() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

// take uses up one occurrence of the first fault of the point.
func (b *Inbox) take(at Point) (f Fault, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.faults, func(f Fault) bool { return f.At == at })
	if i < 0 {
		return f, false
	}
	f = b.faults[i]
	if b.faults[i].Times--; b.faults[i].Times == 0 {
		b.faults = slices.Delete(b.faults, i, i+1)
	}
	return f, true
}

// fail applies the next fault of the point, if there is one, and returns the
// reply to send. The reply after a closed connection reaches no client.
func (s *session) fail(at Point) error {
	f, ok := s.inbox.take(at)
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
