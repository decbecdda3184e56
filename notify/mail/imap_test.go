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
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// A stored message was received some time before the attempt.
type stored struct {
	text string
	age  time.Duration
}

// serveMailbox serves an INBOX with the messages, over TLS if tlsConfig is set.
func serveMailbox(t *testing.T, tlsConfig *tls.Config, messages ...stored) Mailbox {
	t.Helper()
	user := imapmemserver.NewUser("journal", testPassword)
	testkit.NoError(t, user.Create("INBOX", nil))
	for _, m := range messages {
		body := strings.NewReader(strings.ReplaceAll(m.text, "\n", "\r\n"))
		if _, err := user.Append("INBOX", literal{body}, &imap.AppendOptions{Time: testRef().since.Add(-m.age)}); err != nil {
			t.Fatal(err)
		}
	}
	users := imapmemserver.New()
	users.AddUser(user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return users.NewSession(), nil, nil
		},
		TLSConfig: tlsConfig, InsecureAuth: tlsConfig == nil, Logger: log.New(io.Discard, "", 0),
	})
	l := listen(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return mailboxAt(l)
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func mailboxAt(l net.Listener) Mailbox {
	return Mailbox{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, Username: "journal", Password: secret.New(testPassword), Name: "INBOX",
	}
}

// serveIMAP serves a scripted mailbox. answer gets each command and returns the
// untagged lines before its answer, and the answer; empty is OK.
func serveIMAP(t *testing.T, answer func(command string, next func() string) (untagged, answer string)) Mailbox {
	t.Helper()
	l := listen(t)
	converse := func(c net.Conn) {
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprint(c, "* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=XOAUTH2] hello\r\n")
		lines := bufio.NewScanner(c)
		next := func() string {
			_, _ = fmt.Fprint(c, "+ eyJzdGF0dXMiOiI0MDEifQ==\r\n") // {"status":"401"}
			lines.Scan()
			return lines.Text()
		}
		for lines.Scan() {
			tag, command, _ := strings.Cut(lines.Text(), " ")
			untagged, end := answer(command, next)
			if end == "" {
				end = "OK done"
			}
			_, _ = fmt.Fprintf(c, "%s%s %s\r\n", untagged, tag, end)
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go converse(c)
		}
	}()
	return mailboxAt(l)
}

// testStart is when the attempts of these tests started.
var testStart = time.Now()

func testRef() messageRef {
	return Config{From: testFrom, MessageIDDomain: testDomain, Keys: testKeys}.messageRef(testKey, testStart)
}

// wantState fails unless a source knows the state of the message of ref.
func wantState(t *testing.T, name string, s source, ref messageRef, want review.EvidenceState) {
	t.Helper()
	if state, _, err := s.find(t.Context(), ref); err != nil || state != want {
		t.Errorf("%s: %s, error %v, want %s", name, state, err, want)
	}
}

// toAnn are the addresses of the message of testRef.
const toAnn = "From: Criticizer <criticizer@example.com>\nTo: <Ann@example.com>\n"

// The journal identifies a message by its id or its key (notification 6.4). Both
// are compared as a whole: an IMAP search matches parts of a field.
func TestJournal(t *testing.T) {
	t.Parallel()
	ref := testRef()
	const rest = toAnn + "Subject: x\n\nbody\n"
	token := ref.tokens[0]
	other := "Message-ID: <crz1.other@example.com>\nX-Criticizer-Key: other\n" + rest
	for name, tc := range map[string]struct {
		messages []string
		want     review.EvidenceState
		copies   int
	}{
		"no message of ours":   {[]string{"Message-ID: <1@example.com>\n" + rest}, review.EvidenceUnknown, 0},
		"empty":                {nil, review.EvidenceUnknown, 0},
		"another of ours":      {[]string{other}, review.EvidenceAbsent, 0},
		"accepted":             {[]string{other, "Message-ID: <" + ref.id() + ">\nX-Criticizer-Key: " + token + "\n" + rest}, review.EvidenceAccepted, 1},
		"accepted twice":       {[]string{"X-Criticizer-Key: " + token + "\n" + rest, "Message-ID: <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 2},
		"another Message-ID":   {[]string{"Message-ID: <rewritten@relay>\nX-Criticizer-Key: " + token + "\n" + rest}, review.EvidenceAccepted, 1},
		"another, without key": {[]string{"Message-ID: <crz1.other@example.com>\n" + rest}, review.EvidenceAbsent, 0},
		"without key":          {[]string{"Message-ID: <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 1},
		"folded":               {[]string{"Message-ID:\n <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 1},
		"longer key":           {[]string{"X-Criticizer-Key: " + token + "0\n" + rest}, review.EvidenceAbsent, 0},
		"longer id":            {[]string{other, "Message-ID: <0" + ref.id() + ">\n" + rest}, review.EvidenceAbsent, 0},
		"quoted in a body":     {[]string{other, rest + "X-Criticizer-Key: " + token + "\nMessage-ID: <" + ref.id() + ">\n"}, review.EvidenceAbsent, 0},
	} {
		var messages []stored
		for _, m := range tc.messages {
			messages = append(messages, stored{m, 0})
		}
		state, copies, err := journal{serveMailbox(t, nil, messages...)}.find(t.Context(), ref)
		if err != nil || state != tc.want || copies != tc.copies {
			t.Errorf("%s: %s with %d copies, error %v, want %s with %d", name, state, copies, err, tc.want, tc.copies)
		}
	}
}

// A mailbox that cannot be read is an error, never evidence.
func TestUnreadableMailbox(t *testing.T) {
	t.Parallel()
	smtp := serveScript(t, nil)
	for name, tc := range map[string]struct {
		change func(*Mailbox)
		class  failure.Class
	}{
		"no server":          {func(m *Mailbox) { m.Port = 1 }, failure.NetworkUnreachable},
		"wrong password":     {func(m *Mailbox) { m.Password = secret.New("wrong") }, failure.AuthDenied},
		"no such mailbox":    {func(m *Mailbox) { m.Name = "Journal" }, failure.ConfigInvalid},
		"no STARTTLS":        {func(m *Mailbox) { m.TLS = TLSMandatory }, failure.ConfigInvalid},
		"no TLS":             {func(m *Mailbox) { m.TLS = TLSImplicit }, failure.ConfigInvalid},
		"not an IMAP server": {func(m *Mailbox) { m.Port = smtp.addr.Port }, failure.ConfigInvalid},
		"unknown host":       {func(m *Mailbox) { m.Host = "host.invalid" }, failure.NetworkUnreachable},
	} {
		box := serveMailbox(t, nil)
		tc.change(&box)
		for _, s := range []source{journal{box}, bounces{box}} {
			state, _, err := s.find(t.Context(), testRef())
			if state != review.EvidenceUnknown || failure.ClassOf(err) != tc.class {
				t.Errorf("%s, %s: %s, %s: %v, want unknown and %s", name, s.name(), state, failure.ClassOf(err), err, tc.class)
			}
			if err != nil && (strings.Contains(err.Error(), testPassword) || strings.Contains(err.Error(), "wrong")) {
				t.Errorf("the error contains a password: %v", err)
			}
		}
	}
}

func TestSilentMailboxTimesOut(t *testing.T) {
	t.Parallel()
	box := mailboxAt(listen(t)) // the kernel accepts, and no server answers
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err := journal{box}.find(ctx, testRef())
	checkError(t, err, failure.NetworkTimeout, "")
}

func TestMailboxOverTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	box := serveMailbox(t, cert, stored{"X-Criticizer-Key: " + testToken + "\n" + toAnn + "\n", 0})
	box.TLS, box.RootCAs = TLSMandatory, pool
	wantState(t, "trusted", journal{box}, testRef(), review.EvidenceAccepted)
	box.RootCAs = nil
	_, _, err := journal{box}.find(t.Context(), testRef())
	checkError(t, err, failure.ConfigInvalid, "")
}

// bounce returns a report (RFC 3464) as servers write it.
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
	ref := testRef()
	token := ref.tokens[0]
	ours := "Message-ID: <" + ref.id() + ">\nX-Criticizer-Key: " + token + "\n" + toAnn + "Subject: x\n\nbody\n"
	failed := bounce("failed", "ann@example.com", "message/rfc822", ours)
	forwarded := strings.Replace(bounce("failed", "ann@elsewhere.example", "text/rfc822-headers", ours),
		"Action:", "Original-Recipient: rfc822;ANN@example.com\nAction:", 1)
	for name, tc := range map[string]struct {
		messages []stored
		want     review.EvidenceState
	}{
		"with the header":              {[]stored{{bounce("failed", "ann@example.com", "text/rfc822-headers", ours), 0}}, review.EvidenceRejected},
		"with the message":             {[]stored{{bounce("failed", "Ann@Example.com", "message/rfc822", ours), 0}}, review.EvidenceRejected},
		"of a server with SMTPUTF8":    {[]stored{{strings.ReplaceAll(bounce("failed", "ann@example.com", "message/global-headers", ours), "message/delivery-status", "message/global-delivery-status"), 0}}, review.EvidenceRejected},
		"of a forwarded message":       {[]stored{{forwarded, 0}}, review.EvidenceRejected},
		"without a Message-ID of ours": {[]stored{{bounce("failed", "ann@example.com", "message/rfc822", "Message-ID: <x@relay>\nX-Criticizer-Key: "+token+"\n"+toAnn+"\n"), 0}}, review.EvidenceRejected},
		"a delay":                      {[]stored{{bounce("delayed", "ann@example.com", "message/rfc822", ours), 0}}, review.EvidenceAbsent},
		"a delivery":                   {[]stored{{bounce("delivered", "ann@example.com", "message/rfc822", ours), 0}}, review.EvidenceAbsent},
		"of another recipient":         {[]stored{{bounce("failed", "journal@example.com", "message/rfc822", ours), 0}}, review.EvidenceAbsent},
		"of another message":           {[]stored{{bounce("failed", "ann@example.com", "message/rfc822", "Message-ID: <x@y>\nReferences: <"+ref.id()+">\n\n"+token+"\n"), 0}}, review.EvidenceAbsent},
		"a reply that quotes it":       {[]stored{{"Subject: Re: x\n\n> X-Criticizer-Key: " + token + "\n> Action: failed\n", 0}}, review.EvidenceAbsent},
		"cut off in the report":        {[]stored{{failed[:420] + "\n" + token, 0}}, review.EvidenceAbsent},
		"none":                         {[]stored{{"Subject: holidays\n\nbye\n", 0}}, review.EvidenceAbsent},
		// A message does not bounce before it is sent.
		"of an earlier attempt": {[]stored{{failed, time.Hour}}, review.EvidenceUnknown},
		"of both attempts":      {[]stored{{failed, time.Hour}, {failed, 0}, {failed, time.Hour}}, review.EvidenceRejected},
		"clock behind":          {[]stored{{failed, clockSkew / 2}}, review.EvidenceRejected},
		"clock ahead":           {[]stored{{failed, -clockSkew / 2}}, review.EvidenceRejected},
	} {
		wantState(t, name, bounces{serveMailbox(t, nil, tc.messages...)}, ref, tc.want)
	}
}

// A server that finds a message and cannot fetch it contradicts itself.
func TestContradictoryMailbox(t *testing.T) {
	t.Parallel()
	box := serveIMAP(t, func(command string, _ func() string) (untagged, answer string) {
		switch {
		case strings.HasPrefix(command, "SELECT"), strings.HasPrefix(command, "EXAMINE"):
			return "* 1 EXISTS\r\n* FLAGS ()\r\n* OK [UIDVALIDITY 0] odd\r\n", ""
		case strings.HasPrefix(command, "UID SEARCH"):
			return "* SEARCH 7\r\n", ""
		}
		return "", ""
	})
	for _, s := range []source{journal{box}, bounces{box}} {
		state, _, err := s.find(t.Context(), testRef())
		if failure.ClassOf(err) != failure.NetworkUnreachable || state == review.EvidenceAccepted {
			t.Errorf("%s: %s, %v", s.name(), state, err)
		}
	}
}

// The token file is read for every look-up.
func TestMailboxWithAccessToken(t *testing.T) {
	t.Parallel()
	box := serveIMAP(t, func(command string, next func() string) (untagged, answer string) {
		response, ok := strings.CutPrefix(command, "AUTHENTICATE XOAUTH2 ")
		if got, _ := base64.StdEncoding.DecodeString(response); ok && string(got) != "user=journal\x01auth=Bearer "+testPassword+"\x01\x01" {
			next()
			return "", "NO who are you"
		}
		if strings.HasPrefix(command, "UID SEARCH") {
			return "* SEARCH\r\n", ""
		}
		return "", ""
	})
	box.Password, box.TokenFile = secret.Value{}, filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"", "expired", testPassword + "\n"} {
		if token != "" {
			testkit.NoError(t, os.WriteFile(box.TokenFile, []byte(token), 0o600))
		}
		if strings.HasPrefix(token, testPassword) {
			wantState(t, "valid token", journal{box}, testRef(), review.EvidenceUnknown)
			continue
		}
		_, _, err := journal{box}.find(t.Context(), testRef())
		checkError(t, err, failure.AuthDenied, "")
	}
}

func FuzzBounce(f *testing.F) {
	ref := testRef()
	f.Add([]byte(bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+ref.tokens[0]+"\n\n")))
	f.Add([]byte("Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/rfc822\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if ref.rejectedBy(raw) && !bytes.Contains(bytes.ToLower(raw), []byte("action")) {
			t.Errorf("rejected by %q", raw)
		}
	})
}
