package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

func secretOf(s string) secret.Value { return secret.New(s) }

// serveMailbox serves an INBOX that holds the messages.
func serveMailbox(t *testing.T, messages ...string) Mailbox {
	t.Helper()
	user := imapmemserver.NewUser("journal", testPassword)
	if err := user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		body := strings.ReplaceAll(m, "\n", "\r\n")
		if _, err := user.Append("INBOX", literal{strings.NewReader(body)}, &imap.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return serveIMAP(t, user, nil)
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

func serveIMAP(t *testing.T, user *imapmemserver.User, tlsConfig *tls.Config) Mailbox {
	t.Helper()
	users := imapmemserver.New()
	users.AddUser(user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return users.NewSession(), nil, nil
		},
		TLSConfig: tlsConfig, InsecureAuth: tlsConfig == nil, Logger: log.New(io.Discard, "", 0),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	box := Mailbox{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, Username: "journal", Password: secret.New(testPassword)}
	return *box.withDefaults()
}

func testRef() messageRef {
	return messageRef{id: messageID(testKey, testDomain), token: testKey.Token(), recipient: testKey.Recipient, since: time.Now()}
}

// Section 6.4: the journal knows a message by its id or its key, compared
// whole: IMAP finds parts of a header.
func TestJournal(t *testing.T) {
	t.Parallel()
	tr := testRef()
	const rest = "From: criticizer@example.com\nSubject: x\n\nbody\n"
	other := "Message-ID: <crz1.other@example.com>\nX-Criticizer-Key: other\n" + rest
	for name, tc := range map[string]struct {
		messages []string
		want     review.EvidenceState
		copies   int
	}{
		"nothing of ours ever":       {[]string{"Message-ID: <1@example.com>\n" + rest}, review.EvidenceUnknown, 0},
		"empty":                      {nil, review.EvidenceUnknown, 0},
		"another of ours":            {[]string{other}, review.EvidenceAbsent, 0},
		"there":                      {[]string{other, "Message-ID: <" + tr.id + ">\nX-Criticizer-Key: " + tr.token + "\n" + rest}, review.EvidenceAccepted, 1},
		"twice":                      {[]string{"X-Criticizer-Key: " + tr.token + "\n" + rest, "Message-ID: <" + tr.id + ">\n" + rest}, review.EvidenceAccepted, 2},
		"under a Message-ID anew":    {[]string{"Message-ID: <rewritten@relay>\nX-Criticizer-Key: " + tr.token + "\n" + rest}, review.EvidenceAccepted, 1},
		"another, without the key":   {[]string{"Message-ID: <crz1.other@example.com>\n" + rest}, review.EvidenceAbsent, 0},
		"without the key":            {[]string{"Message-ID: <" + tr.id + ">\n" + rest}, review.EvidenceAccepted, 1},
		"folded":                     {[]string{"Message-ID:\n <" + tr.id + ">\n" + rest}, review.EvidenceAccepted, 1},
		"a longer key is another":    {[]string{"X-Criticizer-Key: " + tr.token + "0\n" + rest}, review.EvidenceAbsent, 0},
		"a longer id is another":     {[]string{other, "Message-ID: <0" + tr.id + ">\n" + rest}, review.EvidenceAbsent, 0},
		"quoted in a body is absent": {[]string{other, rest + "X-Criticizer-Key: " + tr.token + "\nMessage-ID: <" + tr.id + ">\n"}, review.EvidenceAbsent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, copies, err := journal{serveMailbox(t, tc.messages...)}.find(t.Context(), tr)
			if err != nil || state != tc.want || copies != tc.copies {
				t.Errorf("%s with %d copies, error %v, want %s with %d", state, copies, err, tc.want, tc.copies)
			}
		})
	}
}

// A mailbox that cannot be asked is an error, never an answer.
func TestMailboxOutOfReach(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := closed.Addr().(*net.TCPAddr).Port
	_ = closed.Close()
	chatty := serveScript(t, nil)
	for name, tc := range map[string]struct {
		change func(*Mailbox)
		class  failure.Class
	}{
		"nobody there":        {func(m *Mailbox) { m.Port = port }, failure.NetworkUnreachable},
		"wrong password":      {func(m *Mailbox) { m.Password = secretOf("wrong") }, failure.AuthDenied},
		"no such mailbox":     {func(m *Mailbox) { m.Name = "Journal" }, failure.ConfigInvalid},
		"no TLS to be had":    {func(m *Mailbox) { m.TLS = TLSMandatory }, failure.ConfigInvalid},
		"not TLS at all":      {func(m *Mailbox) { m.TLS = TLSImplicit }, failure.ConfigInvalid},
		"not an IMAP server":  {func(m *Mailbox) { m.Port = chatty.addr.Port }, failure.ConfigInvalid},
		"refused by the name": {func(m *Mailbox) { m.Host = "host.invalid" }, failure.NetworkUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := serveMailbox(t)
			tc.change(&box)
			for _, s := range []source{journal{box}, bounces{box}} {
				state, _, err := s.find(t.Context(), testRef())
				if state != review.EvidenceUnknown || failure.ClassOf(err) != tc.class {
					t.Errorf("%s: %s, %s: %v, want unknown and %s", s.name(), state, failure.ClassOf(err), err, tc.class)
				}
				if err != nil && (strings.Contains(err.Error(), testPassword) || strings.Contains(err.Error(), "wrong")) {
					t.Errorf("the error shows a password: %v", err)
				}
			}
		})
	}
}

func TestSilentMailboxIsGivenUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	box := Mailbox{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, Username: "u", Password: secretOf("x")}
	_, _, err = journal{box}.find(ctx, testRef())
	checkError(t, err, failure.NetworkTimeout, "")
}

func TestMailboxOverTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	user := imapmemserver.NewUser("journal", testPassword)
	if err := user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := user.Append("INBOX", literal{strings.NewReader("X-Criticizer-Key: " + testKey.Token() + "\r\n\r\n")}, &imap.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	box := serveIMAP(t, user, &tls.Config{Certificates: []tls.Certificate{cert}})
	box.TLS, box.RootCAs = TLSMandatory, pool
	if state, _, err := (journal{box}).find(t.Context(), testRef()); state != review.EvidenceAccepted {
		t.Errorf("%s, %v", state, err)
	}
	box.RootCAs = nil
	_, _, err := journal{box}.find(t.Context(), testRef())
	checkError(t, err, failure.ConfigInvalid, "")
}

// bounce is a report (RFC 3464) as servers write it.
func bounce(action, recipient, kind, header string) string {
	return fmt.Sprintf(`From: MAILER-DAEMON@mail.example.com
To: criticizer@example.com
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

I'm sorry to have to inform you.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mail.example.com
X-Postfix-Queue-ID: 4ABC

Final-Recipient: rfc822; %s
Action: %s
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 gone

--b
Content-Type: %s

%s
--b--
`, recipient, action, kind, header)
}

func TestBounces(t *testing.T) {
	t.Parallel()
	tr := testRef()
	ours := "Message-ID: <" + tr.id + ">\nX-Criticizer-Key: " + tr.token + "\nSubject: x\n\nbody\n"
	forwarded := strings.Replace(bounce("failed", "ann@elsewhere.example", "text/rfc822-headers", ours),
		"Action:", "Original-Recipient: rfc822;ANN@example.com\nAction:", 1)
	for name, tc := range map[string]struct {
		message string
		want    review.EvidenceState
	}{
		"with the header":              {bounce("failed", "ann@example.com", "text/rfc822-headers", ours), review.EvidenceRejected},
		"with the message":             {bounce("failed", "Ann@Example.com", "message/rfc822", ours), review.EvidenceRejected},
		"of a server with SMTPUTF8":    {strings.ReplaceAll(bounce("failed", "ann@example.com", "message/global-headers", ours), "message/delivery-status", "message/global-delivery-status"), review.EvidenceRejected},
		"of a forwarded message":       {forwarded, review.EvidenceRejected},
		"without a Message-ID of ours": {bounce("failed", "ann@example.com", "message/rfc822", "Message-ID: <x@relay>\nX-Criticizer-Key: "+tr.token+"\n\n"), review.EvidenceRejected},
		"late is not rejected":         {bounce("delayed", "ann@example.com", "message/rfc822", ours), review.EvidenceAbsent},
		"delivered is not rejected":    {bounce("delivered", "ann@example.com", "message/rfc822", ours), review.EvidenceAbsent},
		"the journal's is not ann's":   {bounce("failed", "journal@example.com", "message/rfc822", ours), review.EvidenceAbsent},
		"of another message":           {bounce("failed", "ann@example.com", "message/rfc822", "Message-ID: <x@y>\nReferences: <"+tr.id+">\n\n"+tr.token+"\n"), review.EvidenceAbsent},
		"a reply that quotes it":       {"Subject: Re: x\n\n> X-Criticizer-Key: " + tr.token + "\n> Action: failed\n", review.EvidenceAbsent},
		"cut off in the report":        {bounce("failed", "ann@example.com", "message/rfc822", ours)[:420] + "\n" + tr.token, review.EvidenceAbsent},
		"none":                         {"Subject: holidays\n\nbye\n", review.EvidenceAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, _, err := bounces{serveMailbox(t, tc.message)}.find(t.Context(), tr)
			if err != nil || state != tc.want {
				t.Errorf("%s, error %v, want %s", state, err, tc.want)
			}
		})
	}
}

// A message does not bounce before it is sent: that was an earlier attempt.
func TestEarlierBounce(t *testing.T) {
	t.Parallel()
	tr := testRef()
	raw := strings.ReplaceAll(bounce("failed", tr.recipient, "message/rfc822", "X-Criticizer-Key: "+tr.token+"\n\n"), "\n", "\r\n")
	for name, tc := range map[string]struct {
		ages []time.Duration
		want review.EvidenceState
	}{
		"of an earlier attempt":   {[]time.Duration{time.Hour}, review.EvidenceUnknown},
		"of both":                 {[]time.Duration{time.Hour, 0, time.Hour}, review.EvidenceRejected},
		"by a clock that is slow": {[]time.Duration{clockSkew / 2}, review.EvidenceRejected},
		"by a clock that is fast": {[]time.Duration{-clockSkew / 2}, review.EvidenceRejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := imapmemserver.NewUser("journal", testPassword)
			if err := user.Create("INBOX", nil); err != nil {
				t.Fatal(err)
			}
			for _, age := range tc.ages {
				if _, err := user.Append("INBOX", literal{strings.NewReader(raw)}, &imap.AppendOptions{Time: tr.since.Add(-age)}); err != nil {
					t.Fatal(err)
				}
			}
			if state, _, err := (bounces{serveIMAP(t, user, nil)}).find(t.Context(), tr); err != nil || state != tc.want {
				t.Errorf("%s, error %v, want %s", state, err, tc.want)
			}
		})
	}
}

// A server that finds messages and then has fewer of them is of two minds.
func TestMailboxThatContradictsItself(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go findAndForget(c)
		}
	}()
	box := Mailbox{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, Username: "u", Password: secretOf("x")}
	for _, s := range []source{journal{*box.withDefaults()}, bounces{*box.withDefaults()}} {
		state, _, err := s.find(t.Context(), testRef())
		if failure.ClassOf(err) != failure.NetworkUnreachable || state == review.EvidenceAccepted {
			t.Errorf("%s: %s, %v", s.name(), state, err)
		}
	}
}

// findAndForget is an IMAP server that finds a message and cannot fetch it.
func findAndForget(c net.Conn) {
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprint(c, "* OK [CAPABILITY IMAP4rev1] hello\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		tag, command, _ := strings.Cut(lines.Text(), " ")
		switch {
		case strings.HasPrefix(command, "SELECT"), strings.HasPrefix(command, "EXAMINE"):
			_, _ = fmt.Fprint(c, "* 1 EXISTS\r\n* FLAGS ()\r\n* OK [UIDVALIDITY 0] odd\r\n")
		case strings.HasPrefix(command, "UID SEARCH"):
			_, _ = fmt.Fprint(c, "* SEARCH 7\r\n")
		}
		_, _ = fmt.Fprintf(c, "%s OK done\r\n", tag)
	}
}

// A token that is renewed in its file is used from the next look-up on.
func TestMailboxTakesAnAccessToken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go findNothing(c, "user=journal\x01auth=Bearer "+testPassword+"\x01\x01")
		}
	}()
	file := filepath.Join(t.TempDir(), "token")
	box := Mailbox{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, Username: "journal", TokenFile: file}
	_, _, err = journal{*box.withDefaults()}.find(t.Context(), testRef())
	checkError(t, err, failure.AuthDenied, "")
	for _, token := range []string{"expired", testPassword + "\n"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		state, _, err := journal{*box.withDefaults()}.find(t.Context(), testRef())
		if token == "expired" {
			checkError(t, err, failure.AuthDenied, "")
		} else if err != nil || state != review.EvidenceUnknown {
			t.Errorf("%s, %v", state, err)
		}
	}
}

// findNothing is an IMAP server with empty mailboxes that takes one token.
func findNothing(c net.Conn, want string) {
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprint(c, "* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=XOAUTH2] hello\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		tag, command, _ := strings.Cut(lines.Text(), " ")
		answer := "OK done"
		if response, ok := strings.CutPrefix(command, "AUTHENTICATE XOAUTH2 "); ok {
			if got, _ := base64.StdEncoding.DecodeString(response); string(got) != want {
				_, _ = fmt.Fprint(c, "+ eyJzdGF0dXMiOiI0MDEifQ==\r\n") // {"status":"401"}
				answer = "NO who are you"
				lines.Scan()
			}
		}
		if strings.HasPrefix(command, "UID SEARCH") {
			_, _ = fmt.Fprint(c, "* SEARCH\r\n")
		}
		_, _ = fmt.Fprintf(c, "%s %s\r\n", tag, answer)
	}
}

func FuzzBounce(f *testing.F) {
	tr := testRef()
	f.Add([]byte(bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+tr.token+"\n\n")))
	f.Add([]byte("Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/rfc822\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if tr.rejectedBy(raw) && !bytes.Contains(bytes.ToLower(raw), []byte("action")) {
			t.Errorf("rejected by %q", raw)
		}
	})
}
