package mail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A transient failure is retried. A permanent one fails the recipient's row if its code
// names the address, and no row otherwise (notification 8.1). refusals.txt has more replies.
func TestReplyDecidesTheClass(t *testing.T) {
	t.Parallel()
	const words = " <ann@example.com> is to blame"
	for _, tc := range []struct {
		at, reply string
		class     failure.Class
		upstream  string
	}{
		{"greeting", "421 4.3.2", failure.UpstreamUnavailable, "421 4.3.2"},
		{"greeting", "554", failure.ConfigInvalid, "554"},
		{"greeting", "drop", failure.NetworkUnreachable, ""},
		{"greeting", "HTTP/1.1 400 Bad Request", failure.ConfigInvalid, ""},
		{"EHLO", "421 4.3.2", failure.UpstreamUnavailable, "421 4.3.2"},
		{"EHLO", "drop", failure.NetworkUnreachable, ""},

		{"MAIL", "451 4.7.1", failure.UpstreamUnavailable, "451 4.7.1"},
		{"MAIL", "550", failure.ConfigInvalid, "550"},
		{"MAIL", "drop", failure.NetworkUnreachable, ""},

		{"RCPT", "450 4.2.0", failure.UpstreamUnavailable, "450 4.2.0"},
		{"RCPT", "450 5.1.1", failure.UpstreamUnavailable, "450 5.1.1"}, // the digits win
		{"RCPT", "552", failure.UpstreamUnavailable, "552"},             // RFC 5321 4.5.3.1.10
		{"RCPT", "550 5.1.1", failure.RecipientRejected, "550 5.1.1"},
		{"RCPT", "550 4.2.2", failure.RecipientRejected, "550 4.2.2"},
		{"RCPT", "550", failure.PermissionDenied, "550"},
		{"RCPT", "drop", failure.NetworkUnreachable, ""},

		{"DATA", "554 5.7.1", failure.PermissionDenied, "554 5.7.1"},
		{"DATA", "drop", failure.NetworkUnreachable, ""},

		{"dot", "554 5.6.0", failure.ContentPolicy, "554 5.6.0"},
		{"dot", "550 5.1.10", failure.RecipientRejected, "550 5.1.10"},
		{"dot", "599 5.99.99", failure.PermissionDenied, "599 5.99.99"},
		{"dot", "drop", failure.DeliveryAmbiguous, ""},
		{"dot", "354 go on", failure.DeliveryAmbiguous, ""},
		{"dot", "nonsense", failure.DeliveryAmbiguous, ""},
	} {
		t.Run(tc.at+" "+tc.reply, func(t *testing.T) {
			t.Parallel()
			reply := tc.reply
			if reply != "drop" {
				reply += words
			}
			replies := map[string]string{tc.at: reply}
			if tc.at == "EHLO" {
				replies["HELO"] = reply
			}
			p := newSMTP(t, plainConfig(serveScript(t, replies).addr))
			_, err := p.send(t.Context(), render(t, findingsReport()))
			checkError(t, err, tc.class, tc.upstream)
			if tc.upstream != "" && !strings.Contains(err.Error(), "is to blame") {
				t.Errorf("the error does not quote the server: %v", err)
			}
		})
	}
}

// A refusal of RCPT without a reason closes the row if the server accepts on the same
// connection another recipient, whose mail it took before. A known fault is not put to the test.
func TestRefusalOfOneRecipientOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusal, probe string // to the second and the third RCPT
		class          failure.Class
	}{
		"the other passes":       {"550 5.7.1 Access denied", "250 ok", failure.RecipientRejected},
		"without a code":         {"554 no", "250 ok", failure.RecipientRejected},
		"a command is unknown":   {"504 5.5.2 <x>: what", "250 ok", failure.RecipientRejected},
		"the other is refused":   {"550 5.7.1 Access denied", "550 5.7.1 Access denied", failure.PermissionDenied},
		"the connection is lost": {"550 5.7.1 Access denied", "drop", failure.PermissionDenied},
		"later":                  {"450 4.7.1 greylisted", "250 ok", failure.UpstreamUnavailable},
		"the relay":              {"554 5.7.1 Relay access denied", "250 ok", failure.ConfigInvalid},
		"a quota":                {"550 5.4.5 Daily limit", "250 ok", failure.QuotaExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, map[string]string{"2 RCPT": tc.refusal, "3 RCPT": tc.probe})
			p := newSMTP(t, plainConfig(server.addr))
			m := render(t, findingsReport())
			_, err := p.send(t.Context(), m)
			testkit.NoError(t, err)
			m.To = "bob@example.com"
			_, err = p.send(t.Context(), m)
			if failure.ClassOf(err) != tc.class || server.heard("DATA") != 1 {
				t.Errorf("%d times DATA, error %v", server.heard("DATA"), err)
			}
		})
	}
}

// Errors quote the server without addresses, even if only their local parts are named, and
// without the account and tokens.
func TestQuotedReply(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5.1.1 <ann@example.com>: User unknown":  "5.1.1 <(removed)>: User unknown",
		"no mailbox ANN here,\nreally":           "no mailbox (removed) here, really",
		"annual mail of svc refused":             "annual mail of (removed) refused",
		strings.Repeat("QUJD", 20) + " is wrong": "(removed) is wrong",
	} {
		if got := newReply(stepRcpt, 550, text).quote("ann@example.com", "svc"); got != want {
			t.Errorf("%q is quoted as %q", text, got)
		}
	}
}

// The worker introduces itself as the domain of From, or by the configured name.
func TestEHLOName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "EHLO example.com", "mail.example.net": "EHLO mail.example.net"} {
		l := listen(t)
		cfg := plainConfig(l.Addr().(*net.TCPAddr))
		cfg.EHLOName = name
		heard := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(c, "220 hello\r\n")
			line, _ := bufio.NewReader(c).ReadString('\n')
			_ = c.Close()
			heard <- strings.TrimSpace(line)
		}()
		_, err := newSMTP(t, cfg).send(t.Context(), render(t, findingsReport()))
		if got := <-heard; err == nil || got != want {
			t.Errorf("ehlo_name %q: the worker sent %q, want %q: %v", name, got, want, err)
		}
	}
}

// Once the server has confirmed the message, neither a failed QUIT nor another
// code of success changes that.
func TestConfirmedMessageIsSent(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string]map[string]string{
		"QUIT refused":      {"QUIT": "421 4.3.2 going down"},
		"QUIT dropped":      {"QUIT": "drop"},
		"another 2yz":       {"dot": "251 2.1.5 will forward"},
		"no enhanced codes": {"EHLO": "250 scripted", "dot": "250 ok"},
		"no EHLO":           {"EHLO": "500 what?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSMTP(t, plainConfig(serveScript(t, replies).addr))
			if at, err := p.send(t.Context(), render(t, findingsReport())); err != nil || at != stepDot {
				t.Errorf("at %s, error %v", at, err)
			}
		})
	}
}

func TestSignInFailures(t *testing.T) {
	t.Parallel()
	const plainOnly = "250-scripted\r\n250 AUTH PLAIN"
	for _, tc := range []struct {
		name     string
		replies  map[string]string
		class    failure.Class
		upstream string
	}{
		{"wrong password", map[string]string{"AUTH": "535 5.7.8 ann@example.com " + testPassword}, failure.AuthDenied, "535 5.7.8"},
		{"temporary", map[string]string{"AUTH": "454 4.7.0 later"}, failure.UpstreamUnavailable, "454 4.7.0"},
		{"too weak", map[string]string{"AUTH": "534 5.7.9 ann"}, failure.AuthDenied, "534 5.7.9"},
		{"no sign-in offered", map[string]string{"EHLO": "250 scripted"}, failure.ConfigInvalid, ""},
		{"clear text sign-in only", map[string]string{"EHLO": plainOnly}, failure.ConfigInvalid, ""},
		{"connection lost", map[string]string{"AUTH": "drop"}, failure.NetworkUnreachable, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := plainConfig(serveScript(t, tc.replies).addr)
			cfg.Server, cfg.Password = cfg.Server.of("ann"), secret.New(testPassword)
			_, err := newSMTP(t, cfg).send(t.Context(), render(t, findingsReport()))
			checkError(t, err, tc.class, tc.upstream)
		})
	}
}

// A server may take ten minutes for a reply. The context ends the wait.
func TestEndOfContextEndsSending(t *testing.T) {
	t.Parallel()
	for at, class := range map[string]failure.Class{
		"greeting": failure.NetworkTimeout, "EHLO": failure.NetworkTimeout, "RCPT": failure.NetworkTimeout, "DATA": failure.NetworkTimeout,
		"dot": failure.DeliveryAmbiguous,
	} {
		server := serveScript(t, map[string]string{at: "hang", "HELO": "hang"})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-server.hung; cancel() }()
		_, err := newSMTP(t, plainConfig(server.addr)).send(ctx, render(t, findingsReport()))
		checkError(t, err, class, "")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v does not wrap %v", at, err, context.Canceled)
		}
	}
}

// Ping fails like sending, and sends nothing.
func TestPing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replies  map[string]string
		class    failure.Class
		upstream string
	}{
		"success":        {map[string]string{"RCPT": "drop", "DATA": "drop"}, "", ""},
		"server busy":    {map[string]string{"greeting": "421 4.3.2"}, failure.UpstreamUnavailable, "421 4.3.2"},
		"hang-up":        {map[string]string{"EHLO": "drop"}, failure.NetworkUnreachable, ""},
		"sender refused": {map[string]string{"MAIL": "451 4.7.1"}, failure.UpstreamUnavailable, "451 4.7.1"},
	} {
		err := newSMTP(t, plainConfig(serveScript(t, tc.replies).addr)).Ping(t.Context())
		if tc.class != "" {
			checkError(t, err, tc.class, tc.upstream)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failure concerns one message: each has a connection of its own.
func TestEachMessageHasItsConnection(t *testing.T) {
	t.Parallel()
	server := serveScript(t, map[string]string{"2 RCPT": "550 5.1.1 no", "2 dot": "drop"})
	p := newSMTP(t, plainConfig(server.addr))
	for i, class := range []failure.Class{"", failure.RecipientRejected, failure.DeliveryAmbiguous, ""} {
		_, err := p.send(t.Context(), render(t, findingsReport()))
		if got := failure.ClassOf(err); (err != nil || class != "") && got != class {
			t.Errorf("message %d: %v, want class %q", i+1, err, class)
		}
	}
	want := []string{"EHLO MAIL RCPT DATA dot QUIT ", "EHLO MAIL RCPT ", "EHLO MAIL RCPT DATA dot ", "EHLO MAIL RCPT DATA dot QUIT "}
	if !slices.Equal(server.conns, want) {
		t.Errorf("the server got %q, want %q", server.conns, want)
	}
}

// A reply to another command is not a rejection. Before the message it means that
// nothing was sent.
func TestReplyToAnotherCommand(t *testing.T) {
	t.Parallel()
	server := serveScript(t, map[string]string{"MAIL": "250 fine\r\n250 fine"})
	_, err := newSMTP(t, plainConfig(server.addr)).send(t.Context(), render(t, findingsReport()))
	checkError(t, err, failure.UpstreamInternal, "")
}

// beforeSleep returns a time at which the machine began to sleep, long ago. Its monotonic reading
// is of now, because that clock stood still. Package time cannot make such a time: the seconds of
// the wall clock are the bits from 30 on.
func beforeSleep(long time.Duration) time.Time {
	at := time.Now()
	*(*uint64)(unsafe.Pointer(&at)) -= uint64(long/time.Second) << 30
	return at
}

// A worker that was suspended between the start of an attempt and its send may
// resume after another worker has taken over. It sends nothing.
func TestOldAttemptSendsNothing(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]time.Time{
		"by both clocks":          time.Now().Add(-time.Hour),
		"by the wall clock alone": beforeSleep(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, nil)
			m := render(t, findingsReport())
			m.Begun = begun
			_, err := newSMTP(t, plainConfig(server.addr)).send(t.Context(), m)
			checkError(t, err, failure.NetworkTimeout, "")
			if server.heard("dot") > 0 {
				t.Error("it sent the message")
			}
		})
	}
}
