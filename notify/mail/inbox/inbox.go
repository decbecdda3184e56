// Package inbox is a small mail server for one machine: it takes every message
// in, keeps it on disk, shows it on a web page and answers by JSON what it
// holds. It forwards nothing. It is what mail goes to until a real server is
// configured, and what tests look at; for them it can be told to fail.
//
// What it confirmed it has: a message is on disk before the client hears so,
// and is there after a restart.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"
)

// Config says where an inbox keeps its mail and where it answers.
type Config struct {
	// Dir holds one .eml file per message. Required; made if missing. Only one
	// inbox may use it at a time.
	Dir string
	// SMTPAddr takes mail in. Default: 127.0.0.1:1025.
	SMTPAddr string
	// HTTPAddr shows it. Default: 127.0.0.1:8025. There is no sign-in: on
	// another address than loopback anybody who reaches it reads the mail.
	HTTPAddr string
	// MaxMessageBytes is the size over which a message is refused. Default: 10 MB.
	MaxMessageBytes int64
}

func (c Config) withDefaults() Config {
	c.SMTPAddr = cmp.Or(c.SMTPAddr, "127.0.0.1:1025")
	c.HTTPAddr = cmp.Or(c.HTTPAddr, "127.0.0.1:8025")
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 10<<20)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Dir == "":
		return errors.New("open inbox: Dir is empty: name the directory that shall keep the mail")
	case c.MaxMessageBytes < 0:
		return fmt.Errorf("open inbox: MaxMessageBytes %d is negative", c.MaxMessageBytes)
	}
	return nil
}

// An Inbox is an open inbox; it answers while Serve runs.
type Inbox struct {
	lg         *slog.Logger
	cfg        Config
	store      *store
	faults     *faults
	smtp, http net.Listener
}

// Open reads the mail that is in cfg.Dir and takes the two addresses.
func Open(lg *slog.Logger, cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	store, err := openStore(cfg.Dir)
	if err != nil {
		return nil, err
	}
	smtpListener, err := net.Listen("tcp", cfg.SMTPAddr)
	if err != nil {
		return nil, fmt.Errorf("open inbox: take SMTPAddr %s: %w", cfg.SMTPAddr, err)
	}
	httpListener, err := net.Listen("tcp", cfg.HTTPAddr)
	if err != nil {
		_ = smtpListener.Close()
		return nil, fmt.Errorf("open inbox: take HTTPAddr %s: %w", cfg.HTTPAddr, err)
	}
	lg.Info("inbox opened", "smtp", smtpListener.Addr().String(), "url", "http://"+httpListener.Addr().String(), "messages", store.count())
	return &Inbox{lg, cfg, store, &faults{}, smtpListener, httpListener}, nil
}

// SMTPAddr is the address that takes mail in.
func (b *Inbox) SMTPAddr() *net.TCPAddr { return b.smtp.Addr().(*net.TCPAddr) }

// URL is where the web page and the JSON are.
func (b *Inbox) URL() string { return "http://" + b.http.Addr().String() }

const (
	// idleTimeout ends an SMTP connection that says nothing (RFC 5321 4.5.3.2.7).
	idleTimeout = 5 * time.Minute
	// lastWords is how long a stopping inbox finishes what it began.
	lastWords = 2 * time.Second
)

// Serve answers until ctx ends, which is no error. A message whose sender was
// not answered by then may have been kept.
func (b *Inbox) Serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	mailServer := b.newSMTPServer(ctx)
	webServer := &http.Server{
		Handler:           b.routes(),
		ReadHeaderTimeout: lastWords,
		ErrorLog:          slog.NewLogLogger(b.lg.Handler(), slog.LevelWarn),
	}
	g.Go(func() error { return mailServer.Serve(faultyListener{b.smtp, ctx, b.faults}) })
	g.Go(func() error {
		if err := webServer.Serve(b.http); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		_ = mailServer.Close()
		_ = b.smtp.Close() // the server does not know it yet if it was not serving
		b.store.close()    //nolint:contextcheck // must happen although the context has ended
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
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

func (b *Inbox) newSMTPServer(ctx context.Context) *smtp.Server {
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{ctx: ctx, inbox: b, conn: c.Conn()}, nil
	}))
	s.Domain = "inbox.localhost"
	s.MaxMessageBytes = b.cfg.MaxMessageBytes
	s.MaxRecipients = 100
	s.ReadTimeout, s.WriteTimeout = idleTimeout, idleTimeout
	s.EnableSMTPUTF8 = true
	s.ErrorLog = slog.NewLogLogger(b.lg.Handler(), slog.LevelWarn)
	return s
}
