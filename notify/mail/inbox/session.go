package inbox

import (
	"io"
	"net"

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
	return s.fail(StageRcpt)
}

// Data implements [smtp.Session]. A nil error means that the message is on disk.
func (s *session) Data(r io.Reader) error {
	end, err := s.inbox.store.begin()
	if err != nil {
		return errClosing
	}
	defer end()
	if err := s.fail(StageBody); err != nil {
		return err
	}
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.fail(StageDot); err != nil {
		return err
	}
	id, err := s.inbox.store.add(s.from, s.to, message)
	if err != nil {
		s.inbox.lg.Error("mail could not be stored", "error", err)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "the message could not be stored"}
	}
	s.inbox.lg.Info("mail stored", "id", id, "bytes", len(message))
	return s.fail(StageKept)
}

// Reset implements [smtp.Session].
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout implements [smtp.Session].
func (s *session) Logout() error { return nil }

var errClosing = &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "the inbox is stopping"}
