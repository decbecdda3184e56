package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// startSimulatedModel starts the simulated model, unless the environment names a real one.
func (e *environment) startSimulatedModel(ctx context.Context) error {
	if e.opts.baseURL != "" {
		return nil
	}
	port, err := e.opts.choosePort(8026)
	if err != nil {
		return err
	}
	address := localAddress(port)
	e.settings["llm"] = map[string]any{"model": e.opts.model, "base_url": "http://" + address + "/v1", "stand_in": true}
	e.out.say("simulated model on %s", address)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("start the simulated model: %w", err)
	}
	e.stack.serve(ctx, "the simulated model", func(ctx context.Context) error {
		server := &http.Server{Handler: llmsim.New(llmsim.Config{}), ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		return server.Serve(listener)
	})
	return nil
}

// startInbox starts the inbox with the mails of earlier runs.
func (e *environment) startInbox(ctx context.Context) error {
	port, errPort := e.opts.choosePort(1025)
	webPort, errWeb := e.opts.choosePort(8025)
	if err := errors.Join(errPort, errWeb); err != nil {
		return err
	}
	smtp, web := localAddress(port), localAddress(webPort)
	e.inboxURL = "http://" + web
	e.settings["mail"] = map[string]any{
		"server": "smtp+insecure://" + smtp, "from": "Criticizer <criticizer@example.com>",
		"journal": map[string]any{"server": "inbox://" + web},
	}
	e.out.say("inbox on %s, its web page on %s", smtp, e.inboxURL)
	box, err := inbox.Open(slog.New(slog.DiscardHandler), inbox.Config{Dir: e.mail, SMTPAddr: smtp, HTTPAddr: web})
	if err != nil {
		return fmt.Errorf("start the inbox: %w", err)
	}
	e.stack.serve(ctx, "the inbox", box.Serve)
	return nil
}

const loopback = "127.0.0.1"

// choosePort returns the port for a part: the well-known one or, if that is in use or the
// stack is for tests, any free port below those that Linux gives to outgoing connections: one
// of them could take the port before the part listens.
func (o options) choosePort(wellKnown int) (int, error) {
	if !o.forTests && isFree(wellKnown) {
		return wellKnown, nil
	}
	const lowest, highest, tries = 10_000, 32_768, 1000
	for range tries {
		if port := lowest + rand.IntN(highest-lowest); isFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: none is free")
}

// isFree reports whether nothing listens on port. Binding is not enough: some
// systems let a program bind loopback although a wildcard listener exists.
func isFree(port int) bool {
	address := localAddress(port)
	if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		_ = conn.Close()
		return false
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// localAddress returns host and port of a part.
func localAddress(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
