package mailhost

import (
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync"

	"github.com/emersion/go-smtp"
)

// A Relay hands what Postfix delivers on to Dovecot, both by LMTP. What is for
// an account that is held stays in Postfix's queue.
type Relay struct {
	server *smtp.Server
	port   int
	target string

	mu   sync.Mutex
	held map[string]bool
}

// openRelay listens on a port of 127.0.0.1 for the server at target.
func openRelay(target string) (*Relay, error) {
	r := &Relay{target: target, held: map[string]bool{}}
	var err error
	r.server, r.port, err = serveLMTP(r)
	return r, err
}

// serveLMTP serves on a port of 127.0.0.1.
func serveLMTP(backend smtp.Backend) (*smtp.Server, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	server := smtp.NewServer(backend)
	server.LMTP, server.Domain, server.ErrorLog = true, "lmtp."+Domain, log.New(io.Discard, "", 0)
	go func() { _ = server.Serve(l) }()
	return server, l.Addr().(*net.TCPAddr).Port, nil
}

// Port is where the relay listens.
func (r *Relay) Port() int { return r.port }

// Hold keeps mail from the accounts until they are released.
func (r *Relay) Hold(accounts ...string) { r.set(true, accounts) }

// Release ends Hold. Postfix tries again within seconds.
func (r *Relay) Release(accounts ...string) { r.set(false, accounts) }

func (r *Relay) set(held bool, accounts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range accounts {
		r.held[a] = held
	}
}

func (r *Relay) holds(recipient string) bool {
	account, _, _ := strings.Cut(recipient, "@")
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[account]
}

// NewSession implements [smtp.Backend].
func (r *Relay) NewSession(*smtp.Conn) (smtp.Session, error) {
	conn, err := net.Dial("tcp", r.target)
	if err != nil {
		return nil, later(err)
	}
	return &relaying{relay: r, dovecot: smtp.NewClientLMTP(conn)}, nil
}

func (r *Relay) close() error { return r.server.Close() }

// relaying is one connection of Postfix with its counterpart.
type relaying struct {
	relay   *Relay
	dovecot *smtp.Client
}

func (s *relaying) Reset()        { _ = s.dovecot.Reset() }
func (s *relaying) Logout() error { return s.dovecot.Close() }

func (s *relaying) Mail(from string, _ *smtp.MailOptions) error {
	return later(s.dovecot.Mail(from, nil))
}

func (s *relaying) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.relay.holds(to) {
		return later(errors.New("mailbox held"))
	}
	return later(s.dovecot.Rcpt(to, nil))
}

// Data implements [smtp.Session], which LMTP does not use.
func (s *relaying) Data(io.Reader) error { return errors.ErrUnsupported }

// LMTPData implements [smtp.LMTPSession]: Dovecot answers for each recipient.
func (s *relaying) LMTPData(message io.Reader, status smtp.StatusCollector) error {
	body, err := s.dovecot.Data()
	if err != nil {
		return later(err)
	}
	if _, err := io.Copy(body, message); err != nil {
		return later(err)
	}
	taken, err := body.CloseWithLMTPResponse()
	for to := range taken {
		status.SetStatus(to, nil)
	}
	refused, _ := errors.AsType[smtp.LMTPDataError](err)
	for to, why := range refused {
		status.SetStatus(to, why)
	}
	return later(err)
}

// later has Postfix try again, unless Dovecot itself has answered.
func later(err error) error {
	if _, answered := errors.AsType[*smtp.SMTPError](err); err == nil || answered {
		return err
	}
	return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 2, 1}, Message: err.Error()}
}
