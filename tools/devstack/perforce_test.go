package main

import (
	"context"
	"log/slog"
	"net/smtp"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

const someChanges = `... change 12
... time 1714521600
... user vera
... path //depot/src/*
... desc Say "... change 99" in a description.

... change 3
... time 1714521500
... user bruno
... path //other/...
`

func TestParseChanges(t *testing.T) {
	t.Parallel()
	list, err := parseChanges(strings.ReplaceAll(someChanges, "\n", "\r\n"))
	testkit.NoError(t, err)
	want := []submitted{{3, "//other"}, {12, "//depot"}}
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v: oldest first", list, want)
	}
	if got := depotsOf(append(list, list...)); !slices.Equal(got, []string{"//other/...", "//depot/..."}) {
		t.Errorf("depots %v", got)
	}
}

func TestPrintMail(t *testing.T) {
	t.Parallel()
	box, err := inbox.Open(slog.New(slog.DiscardHandler), inbox.Config{Dir: t.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- box.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for id, text := range map[string]string{"few@example.com": "one finding", "many@example.com": "three findings\r\nof three kinds"} {
		message := "Message-ID: <" + id + ">\r\nSubject: Review\r\nContent-Type: text/plain\r\n\r\n" + text + "\r\n"
		testkit.NoError(t, smtp.SendMail(box.SMTPAddr().String(), nil, "criticizer@example.com", []string{"ada@example.com"}, []byte(message)))
	}
	var shown strings.Builder
	testkit.NoError(t, printMail(t.Context(), &shown, box.URL(), "many@example.com"))
	if want := "\nTo: ada@example.com\nSubject: Review\n\n  three findings\n  of three kinds\n\n"; shown.String() != want {
		t.Errorf("got\n%s\nwant\n%s", shown.String(), want)
	}
	if err := printMail(t.Context(), &shown, box.URL(), "lost@example.com"); err == nil || !strings.Contains(err.Error(), "lost@example.com") {
		t.Errorf("a mail that is not there: %v", err)
	}
}
