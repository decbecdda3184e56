package mail

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

const (
	opening    = "EHLO "
	oneMessage = "MAIL RCPT DATA dot "
)

// Consecutive messages share a connection. A failure concerns one message, and
// the next message gets a new connection.
func TestMessagesShareAConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replies map[string]string
		want    []string
		classes []failure.Class // of each message in turn
	}{
		"all accepted": {
			nil,
			[]string{opening + oneMessage + "RSET " + oneMessage + "RSET " + oneMessage + "QUIT "},
			[]failure.Class{"", "", ""},
		},
		"the second recipient is refused": {
			map[string]string{"2 RCPT": "550 5.1.1 no"},
			[]string{opening + oneMessage + "RSET MAIL RCPT ", opening + oneMessage + "QUIT "},
			[]failure.Class{"", failure.RecipientRejected, ""},
		},
		"the connection breaks at the second dot": {
			map[string]string{"2 dot": "drop"},
			[]string{opening + oneMessage + "RSET " + oneMessage, opening + oneMessage + "QUIT "},
			[]failure.Class{"", failure.DeliveryAmbiguous, ""},
		},
		"the server has closed the idle connection": {
			map[string]string{"1 RSET": "drop"},
			[]string{opening + oneMessage + "RSET ", opening + oneMessage + "RSET " + oneMessage + "QUIT "},
			[]failure.Class{"", "", ""},
		},
		"the server accepts no more on this connection": {
			map[string]string{"1 RSET": "421 4.7.0 enough"},
			[]string{opening + oneMessage + "RSET ", opening + oneMessage + "RSET " + oneMessage + "QUIT "},
			[]failure.Class{"", "", ""},
		},
		"the sign-in has expired": {
			map[string]string{"2 MAIL": "530 5.7.0 token expired"},
			[]string{opening + oneMessage + "RSET MAIL ", opening + oneMessage + "RSET " + oneMessage + "QUIT "},
			[]failure.Class{"", "", ""},
		},
		"the sender is refused": {
			map[string]string{"2 MAIL": "550 5.7.1 no", "3 MAIL": "550 5.7.1 no"},
			[]string{opening + oneMessage + "RSET MAIL ", opening + "MAIL ", opening + oneMessage + "QUIT "},
			[]failure.Class{"", failure.ConfigInvalid, ""},
		},
		"an extra reply": {
			map[string]string{"1 dot": "250 queued\r\n250 queued"},
			[]string{opening + oneMessage, opening + oneMessage + "RSET " + oneMessage + "QUIT "},
			[]failure.Class{"", "", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, tc.replies)
			p := newSMTP(t, plainConfig(server.addr))
			for i, class := range tc.classes {
				_, err := p.Send(t.Context(), render(t, findingsReport()))
				if got := failure.ClassOf(err); (err != nil || class != "") && got != class {
					t.Errorf("message %d: %v, want class %q", i+1, err, class)
				}
			}
			if got := server.wait(t, 1); strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("the server got %q, want %q", got, tc.want)
			}
		})
	}
}

// Servers limit the messages of one connection.
func TestConnectionIsReplacedBeforeTheLimit(t *testing.T) {
	t.Parallel()
	server := serveScript(t, nil)
	p := newSMTP(t, plainConfig(server.addr))
	m := render(t, findingsReport())
	for range messagesPerSession + 1 {
		if _, err := p.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	conns := server.wait(t, 2)
	if len(conns) != 2 || strings.Count(conns[0], "dot") != messagesPerSession {
		t.Errorf("%d connections, the first with %d messages", len(conns), strings.Count(conns[0], "dot"))
	}
}

// The context of a message does not affect later messages on its connection, and
// their contexts do.
func TestContextAppliesToItsMessage(t *testing.T) {
	t.Parallel()
	server := serveScript(t, nil)
	p := newSMTP(t, plainConfig(server.addr))
	m := render(t, findingsReport())
	first, end := context.WithCancel(t.Context())
	if _, err := p.Send(first, m); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := p.Send(t.Context(), m); err != nil {
		t.Errorf("the message after one whose context has ended: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := p.Send(ended, m)
	checkError(t, err, failure.NetworkTimeout, "")
}

// A reply to another command is not a rejection. Before the message it means that
// nothing was sent.
func TestReplyToAnotherCommand(t *testing.T) {
	t.Parallel()
	server := serveScript(t, map[string]string{"1 MAIL": "250 fine\r\n250 fine"})
	p := newSMTP(t, plainConfig(server.addr))
	_, err := p.Send(t.Context(), render(t, findingsReport()))
	checkError(t, err, failure.UpstreamInternal, "")
	if _, err := p.Send(t.Context(), render(t, findingsReport())); err != nil {
		t.Errorf("the next message: %v", err)
	}
}

// A worker that was suspended between the start of an attempt and its send may
// resume after another worker has taken over. It sends nothing.
func TestOldAttemptSendsNothing(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]time.Time{
		"by both clocks":          time.Now().Add(-time.Hour),
		"by the wall clock alone": time.Now().Round(0).Add(-time.Hour), // the monotonic clock stood still
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, nil)
			m := render(t, findingsReport())
			m.Begun = begun
			_, err := newSMTP(t, plainConfig(server.addr)).Send(t.Context(), m)
			checkError(t, err, failure.NetworkTimeout, "")
			if server.heard("dot") > 0 {
				t.Error("it sent the message")
			}
		})
	}
}
