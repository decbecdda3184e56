package inbox

import (
	"context"
	"io"
	"net"

	"github.com/emersion/go-smtp"
)

// A session is one SMTP connection.
type session struct {
	ctx   context.Context // ends with the inbox
	inbox *Inbox
	conn  net.Conn
	from  string
	to    []string
}

// Mail implements [smtp.Session].
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return s.inbox.faults.strike(s.ctx, StageMail, s.conn)
}

// Rcpt implements [smtp.Session].
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := s.inbox.faults.strike(s.ctx, StageRcpt, s.conn); err != nil {
		return err
	}
	s.to = append(s.to, to)
	return nil
}

// Data implements [smtp.Session]. No error means that the message is on disk.
func (s *session) Data(r io.Reader) error {
	end, err := s.inbox.store.begin()
	if err != nil {
		return errClosing
	}
	defer end()
	if err := s.inbox.faults.strike(s.ctx, StageBody, s.conn); err != nil {
		return err
	}
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.inbox.faults.strike(s.ctx, StageDot, s.conn); err != nil {
		return err
	}
	e, err := s.inbox.store.keep(s.from, s.to, message)
	if err != nil {
		s.inbox.lg.Error("mail could not be kept", "error", err)
		return errNotKept
	}
	s.inbox.lg.Info("mail kept", "id", e.ID, "bytes", e.Size)
	return s.inbox.faults.strike(s.ctx, StageKept, s.conn)
}

// Reset implements [smtp.Session].
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout implements [smtp.Session].
func (s *session) Logout() error { return nil }

var (
	errClosing = &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "the inbox is stopping"}
	errNotKept = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "the message could not be kept"}
)
