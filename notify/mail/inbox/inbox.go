// Package inbox is a small mail server for the demo and for tests. It accepts
// every message, stores it on disk, shows it on a web page and answers queries in
// JSON. It forwards nothing. Tests can inject faults.
//
// A message is on disk before the client gets the confirmation, and survives a
// restart.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"
)

// Config selects where an inbox stores its mail and where it listens.
type Config struct {
	// Dir holds one .eml file per message. It is created if missing. Only one
	// inbox may use it at a time. Required.
	Dir string
	// SMTPAddr accepts mail, HTTPAddr serves the page. Required. The page has no
	// sign-in: on another address than loopback, everyone who can reach it can
	// read the mail.
	SMTPAddr, HTTPAddr string
}

// An Inbox is an open inbox. It answers while Serve runs.
type Inbox struct {
	lg         *slog.Logger
	store      *store
	smtp, http net.Listener

	mu     sync.Mutex
	faults []Fault // that have not occurred yet
}

// Open reads the mail in cfg.Dir and listens on the two addresses.
func Open(lg *slog.Logger, cfg Config) (*Inbox, error) {
	store, err := openStore(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	smtpListener, err := net.Listen("tcp", cfg.SMTPAddr)
	if err != nil {
		return nil, fmt.Errorf("open inbox: listen for mail: %w", err)
	}
	httpListener, err := net.Listen("tcp", cfg.HTTPAddr)
	if err != nil {
		_ = smtpListener.Close()
		return nil, fmt.Errorf("open inbox: listen for HTTP: %w", err)
	}
	b := &Inbox{lg: lg, store: store, smtp: smtpListener, http: httpListener}
	lg.Info("inbox opened", "smtp", b.SMTPAddr().String(), "url", b.URL(), "messages", len(store.entries))
	return b, nil
}

// SMTPAddr is the address that accepts mail.
func (b *Inbox) SMTPAddr() *net.TCPAddr { return b.smtp.Addr().(*net.TCPAddr) }

// URL is the address of the web page and of the JSON.
func (b *Inbox) URL() string { return "http://" + b.http.Addr().String() }

const (
	// idleTimeout ends an idle SMTP connection (RFC 5321 4.5.3.2.7).
	idleTimeout = 5 * time.Minute
	// shutdownTimeout bounds how long HTTP requests may take after the end.
	shutdownTimeout = 2 * time.Second
	// maxMessage bounds the size of a message, in bytes.
	maxMessage = 10 << 20
)

// Serve answers until ctx ends, which is not an error. A message whose sender got
// no answer by then may have been stored.
func (b *Inbox) Serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	mailServer := b.newSMTPServer()
	webServer := &http.Server{
		Handler:           b.routes(),
		ReadHeaderTimeout: shutdownTimeout,
		ErrorLog:          slog.NewLogLogger(b.lg.Handler(), slog.LevelWarn),
	}
	g.Go(func() error { return mailServer.Serve(b.smtp) })
	g.Go(func() error {
		if err := webServer.Serve(b.http); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		_ = mailServer.Close()
		_ = b.smtp.Close() // the server does not know the listener before it serves
		b.store.close()    //nolint:contextcheck // must happen although the context has ended
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if webServer.Shutdown(closing) != nil {
			_ = webServer.Close()
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("serve inbox: %w", err)
	}
	return nil
}

func (b *Inbox) newSMTPServer() *smtp.Server {
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{inbox: b, conn: c.Conn()}, nil
	}))
	s.Domain = "inbox.localhost"
	s.MaxMessageBytes = maxMessage
	s.ReadTimeout, s.WriteTimeout = idleTimeout, idleTimeout
	s.EnableSMTPUTF8 = true
	s.ErrorLog = slog.NewLogLogger(b.lg.Handler(), slog.LevelWarn)
	return s
}
