package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// startModel starts the simulated model and returns its base URL.
func startModel(ctx context.Context, s *stack, wanted int) (string, error) {
	port, err := choosePort(wanted, 8026, "model-port")
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", localAddress(port))
	if err != nil {
		return "", fmt.Errorf("start the model: %w", err)
	}
	err = s.serve(ctx, "model", func(ctx context.Context, lg *slog.Logger) error {
		server := &http.Server{
			Handler: llmsim.New(llmsim.Config{}), ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: slog.NewLogLogger(lg.Handler(), slog.LevelWarn),
		}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	s.out.say("simulated model on %s", listener.Addr())
	return "http://" + listener.Addr().String() + "/v1", err
}

// startInbox starts the inbox with the mails in dir. It returns the port for mail
// and the address of its web page.
func startInbox(ctx context.Context, s *stack, wantedSMTP, wantedWeb int, dir string) (smtpPort int, url string, err error) {
	if smtpPort, err = choosePort(wantedSMTP, 1025, "smtp-port"); err != nil {
		return 0, "", err
	}
	webPort, err := choosePort(wantedWeb, 8025, "inbox-port")
	if err != nil {
		return 0, "", err
	}
	opened := make(chan error, 1)
	err = s.serve(ctx, "inbox", func(ctx context.Context, lg *slog.Logger) error {
		box, err := inbox.Open(lg, inbox.Config{Dir: dir, SMTPAddr: localAddress(smtpPort), HTTPAddr: localAddress(webPort)})
		opened <- err
		if err != nil {
			return err
		}
		return box.Serve(ctx)
	})
	if err != nil {
		return 0, "", err
	}
	if err := <-opened; err != nil {
		return 0, "", err
	}
	url = "http://" + localAddress(webPort)
	s.out.say("inbox on %s, its web page on %s", localAddress(smtpPort), url)
	return smtpPort, url, nil
}
