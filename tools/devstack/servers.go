package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// startSimulatedModel starts the simulated model.
func (e *environment) startSimulatedModel(ctx context.Context) error {
	port, err := e.opts.choosePort(e.opts.modelPort, 8026, "model-port")
	if err != nil {
		return err
	}
	address := localAddress(port)
	e.settings.modelURL = "http://" + address + "/v1"
	e.out.say("simulated model on %s", address)
	return e.stack.serve(ctx, "model", func(lg *slog.Logger) (func(context.Context) error, error) {
		listener, err := net.Listen("tcp", address)
		return func(ctx context.Context) error {
			server := &http.Server{
				Handler: llmsim.New(llmsim.Config{}), ReadHeaderTimeout: 10 * time.Second,
				ErrorLog: slog.NewLogLogger(lg.Handler(), slog.LevelWarn),
			}
			context.AfterFunc(ctx, func() { _ = server.Close() })
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}, err
	})
}

// startInbox starts the inbox with the mails of earlier runs.
func (e *environment) startInbox(ctx context.Context) (err error) {
	if e.settings.smtpPort, err = e.opts.choosePort(e.opts.smtpPort, 1025, "smtp-port"); err != nil {
		return err
	}
	webPort, err := e.opts.choosePort(e.opts.inboxPort, 8025, "inbox-port")
	if err != nil {
		return err
	}
	smtp, web := localAddress(e.settings.smtpPort), localAddress(webPort)
	e.settings.inboxURL = "http://" + web
	e.out.say("inbox on %s, its web page on %s", smtp, e.settings.inboxURL)
	return e.stack.serve(ctx, "inbox", func(lg *slog.Logger) (func(context.Context) error, error) {
		box, err := inbox.Open(lg, inbox.Config{Dir: e.mail, SMTPAddr: smtp, HTTPAddr: web})
		if err != nil {
			return nil, err
		}
		return box.Serve, nil
	})
}
