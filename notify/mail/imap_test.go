package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync/atomic"
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
	return serveLies(t, tlsConfig, func(*imap.SearchCriteria) error { return nil }, messages...)
}

// serveLies is serveMailbox with a search that lies.
func serveLies(t *testing.T, tlsConfig *tls.Config, lie func(*imap.SearchCriteria) error, messages ...stored) Mailbox {
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
			return lyingSession{users.NewSession(), lie}, nil, nil
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
		Server: ServerURL("imap+insecure://journal@" + l.Addr().String()), Password: secret.New(testPassword),
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
	if found, err := s.find(t.Context(), ref); err != nil || found.state != want {
		t.Errorf("%s: %s, error %v, want %s", name, found.state, err, want)
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
	const older = "Received: an hour ago\n" // before the attempt
	other := older + "Message-ID: <crz1.other@example.com>\nX-Criticizer-Key: other\n" + rest
	for name, tc := range map[string]struct {
		messages []string
		want     review.EvidenceState
		copies   int
	}{
		"no message of ours":   {[]string{"Message-ID: <1@example.com>\n" + rest}, review.EvidenceUnknown, 0},
		"empty":                {nil, review.EvidenceUnknown, 0},
		"ours, but later":      {[]string{"Message-ID: <crz1.other@example.com>\nX-Criticizer-Key: other\n" + rest}, review.EvidenceUnknown, 0},
		"a report of Exchange": {[]string{other, journalReport("Message-ID: <" + ref.id() + ">\n" + rest)}, review.EvidenceAccepted, 1},
		"a report of another":  {[]string{older + journalReport(other)}, review.EvidenceAbsent, 0},
		"a report to another":  {[]string{other, journalReport("Message-ID: <" + ref.id() + ">\nFrom: criticizer@example.com\nTo: bob@example.com\n\n")}, review.EvidenceUnknown, 0},
		"another of ours":      {[]string{other}, review.EvidenceAbsent, 0},
		"accepted":             {[]string{other, "Message-ID: <" + ref.id() + ">\nX-Criticizer-Key: " + token + "\n" + rest}, review.EvidenceAccepted, 1},
		"accepted twice":       {[]string{"X-Criticizer-Key: " + token + "\n" + rest, "Message-ID: <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 2},
		"another Message-ID":   {[]string{"Message-ID: <rewritten@relay>\nX-Criticizer-Key: " + token + "\n" + rest}, review.EvidenceAccepted, 1},
		"another, without key": {[]string{older + "Message-ID: <crz1.other@example.com>\n" + rest}, review.EvidenceAbsent, 0},
		"without key":          {[]string{"Message-ID: <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 1},
		"folded":               {[]string{"Message-ID:\n <" + ref.id() + ">\n" + rest}, review.EvidenceAccepted, 1},
		"longer key":           {[]string{other, "X-Criticizer-Key: " + token + "0\n" + rest}, review.EvidenceAbsent, 0},
		"longer id":            {[]string{other, "Message-ID: <0" + ref.id() + ">\n" + rest}, review.EvidenceAbsent, 0},
		"quoted in a body":     {[]string{other, rest + "X-Criticizer-Key: " + token + "\nMessage-ID: <" + ref.id() + ">\n"}, review.EvidenceAbsent, 0},
	} {
		var messages []stored
		for _, m := range tc.messages {
			age := time.Duration(0)
			if strings.HasPrefix(m, older) {
				age = time.Hour
			}
			messages = append(messages, stored{m, age})
		}
		found, err := journal{serveMailbox(t, nil, messages...)}.find(t.Context(), ref)
		state, copies := found.state, found.copies
		if err != nil || state != tc.want || copies != tc.copies {
			t.Errorf("%s: %s with %d copies, error %v, want %s with %d", name, state, copies, err, tc.want, tc.copies)
		}
	}
}

// journalReport returns what Exchange stores in a journal: the message within a message.
func journalReport(message string) string {
	return `From: Microsoft Exchange <journal@example.com>
To: journal@example.com
Message-ID: <0af1@journal.report.generator>
X-MS-Journal-Report:
Content-Type: multipart/mixed; boundary="j"

--j
Content-Type: text/plain

Sender: criticizer@example.com
Recipient: ann@example.com

--j
Content-Type: message/rfc822

` + message + "\n--j--\n"
}

// A lyingSession searches in a way that some servers do.
type lyingSession struct {
	imapserver.Session
	lie func(*imap.SearchCriteria) error
}

var errNothingFound = errors.New("nothing is found")

func (s lyingSession) Search(kind imapserver.NumKind, criteria *imap.SearchCriteria, options *imap.SearchOptions) (*imap.SearchData, error) {
	switch err := s.lie(criteria); {
	case errors.Is(err, errNothingFound):
		return &imap.SearchData{All: imap.UIDSet{}}, nil
	case err != nil:
		return nil, err
	}
	return s.Session.Search(kind, criteria, options)
}

// values calls change with each value that the criteria look for.
func values(c *imap.SearchCriteria, change func(*string)) {
	for i := range c.Header {
		change(&c.Header[i].Value)
	}
	for i := range c.Text {
		change(&c.Text[i])
	}
	for i := range c.Or {
		values(&c.Or[i][0], change)
		values(&c.Or[i][1], change)
	}
}

// A server whose search does not work never makes a message absent that is in the journal. One
// that is not there is absent only if the headers since the attempt could be read, and reach
// back to a message of ours from before it.
func TestJournalThatLies(t *testing.T) {
	t.Parallel()
	ref := testRef()
	sent := stored{"Message-ID: <" + ref.id() + ">\nX-Criticizer-Key: " + ref.tokens[0] + "\n" + toAnn + "\n", 0}
	before := stored{"Message-ID: <crz1.0123456789abcdef@example.com>\nX-Criticizer-Key: 0123456789abcdef\n" + toAnn + "\n", time.Hour}
	after := stored{"Message-ID: <crz1.fedcba9876543210@example.com>\nX-Criticizer-Key: fedcba9876543210\n" + toAnn + "\n", 0}
	foreign := stored{"Message-ID: <1@example.com>\nFrom: x@example.com\n\n", 0}
	lies := map[string]func(*imap.SearchCriteria) error{
		"no lie":  func(*imap.SearchCriteria) error { return nil },
		"nothing": func(*imap.SearchCriteria) error { return errNothingFound },
		"refused": func(*imap.SearchCriteria) error {
			return &imap.Error{Type: imap.StatusResponseTypeBad, Text: "invalid command or parameters"}
		},
		"everything": func(c *imap.SearchCriteria) error {
			*c = imap.SearchCriteria{}
			return nil
		},
		"everything of ours, nothing by value": func(c *imap.SearchCriteria) (err error) {
			values(c, func(v *string) {
				if len(*v) >= 20 {
					err = errNothingFound
				}
			})
			return err
		},
		"only words": func(c *imap.SearchCriteria) error {
			values(c, func(v *string) {
				if strings.ContainsAny(*v, ".@") || *v == "" {
					*v = "no word"
				}
			})
			return nil
		},
		"only the first part": func(c *imap.SearchCriteria) error {
			values(c, func(v *string) { *v = (*v)[:min(len(*v), 5)] })
			return nil
		},
	}
	for name, lie := range lies {
		for what, tc := range map[string]struct {
			messages []stored
			want     review.EvidenceState
		}{
			"sent":            {[]stored{before, foreign, sent}, review.EvidenceAccepted},
			"not sent":        {[]stored{before, foreign, after}, review.EvidenceAbsent},
			"rotated":         {[]stored{foreign, after}, review.EvidenceUnknown},
			"sent in a crowd": {append(slices.Repeat([]stored{after}, maxMessages+1), before, sent), review.EvidenceAccepted},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				wantState(t, name, journal{serveLies(t, nil, lie, tc.messages...)}, ref, tc.want)
			})
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
		"no server":          {func(m *Mailbox) { m.Server = "imap+insecure://journal@127.0.0.1:1" }, failure.NetworkUnreachable},
		"wrong password":     {func(m *Mailbox) { m.Password = secret.New("wrong") }, failure.AuthDenied},
		"no STARTTLS":        {func(m *Mailbox) { m.Server = m.Server.as("imap") }, failure.ConfigInvalid},
		"no TLS":             {func(m *Mailbox) { m.Server = m.Server.as("imaps") }, failure.ConfigInvalid},
		"not an IMAP server": {func(m *Mailbox) { m.Server = ServerURL("imap+insecure://journal@" + smtp.addr.String()) }, failure.ConfigInvalid},
		"unknown host":       {func(m *Mailbox) { m.Server = "imap+insecure://journal@host.invalid" }, failure.NetworkUnreachable},
	} {
		box := serveMailbox(t, nil)
		tc.change(&box)
		for _, s := range []source{journal{box}, bounces{box}} {
			found, err := s.find(t.Context(), testRef())
			state := found.state
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
	_, err := journal{box}.find(ctx, testRef())
	checkError(t, err, failure.NetworkTimeout, "")
}

func TestMailboxOverTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	box := serveMailbox(t, cert, stored{"X-Criticizer-Key: " + testToken + "\n" + toAnn + "\n", 0})
	box.Server, box.RootCAs = box.Server.as("imap"), pool
	wantState(t, "trusted", journal{box}, testRef(), review.EvidenceAccepted)
	box.RootCAs = nil
	_, err := journal{box}.find(t.Context(), testRef())
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
		"with comments":                {[]stored{{strings.Replace(failed, "Action: failed", "Action: failed (for good)", 1), 0}}, review.EvidenceRejected},
		"with a line that is no field": {[]stored{{strings.Replace(failed, "X-Postfix-Queue-ID", "received by mail\nX-Postfix-Queue-ID", 1), 0}}, review.EvidenceRejected},
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

// A bounce has the class of its status and of what the server said: only one that means the
// address closes the row for good.
func TestBounceSaysWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	ref := testRef()
	report := bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+ref.tokens[0]+"\n"+toAnn+"\n")
	for said, want := range map[string]struct {
		class    failure.Class
		upstream string
	}{
		"5.1.1|smtp; 550 5.1.1 <ann@example.com>: User unknown": {failure.RecipientRejected, "550 5.1.1"},
		"5.1.1|":                            {failure.RecipientRejected, "550 5.1.1"},
		"5.0.0|smtp; 550 No such user here": {failure.RecipientRejected, "550"},
		"5.2.2|smtp;552 5.2.2 mailbox full": {failure.RecipientRejected, "552 5.2.2"},
		"5.4.1|smtp;550 5.4.1 Recipient address rejected: Access denied":                                    {failure.RecipientRejected, "550 5.4.1"},
		"5.7.26|smtp; 550-5.7.26 Unauthenticated email is not accepted due to domain's DMARC policy":        {failure.ConfigInvalid, "550 5.7.26"},
		"5.7.1|smtp; 554 5.7.1 Service unavailable; Client host [192.0.2.5] blocked using zen.spamhaus.org": {failure.ConfigInvalid, "554 5.7.1"},
		"5.0.0|smtp; 550 Administrative prohibition":                                                        {failure.PermissionDenied, "550"},
		"4.4.7|": {failure.UpstreamUnavailable, "450 4.4.7"},
		"4.4.1|smtp; connect to mail.example.com[192.0.2.5]:25: Connection timed out": {failure.UpstreamUnavailable, "450 4.4.1"},
		"5.4.7|X-Unix; message too old":                                               {failure.UpstreamUnavailable, "550 5.4.7"},
		"5.3.4|smtp; 552 5.3.4 Message size exceeds fixed limit":                      {failure.TooLarge, "552 5.3.4"},
	} {
		status, diagnostic, _ := strings.Cut(said, "|")
		raw := strings.NewReplacer("Status: 5.1.1", "Status: "+status, "smtp; 550 5.1.1 gone", diagnostic).Replace(report)
		p := evidenced(t, unused, accepted)
		p.bounces = bounces{serveMailbox(t, nil, stored{raw, 0})}
		e, err := p.query(t.Context(), ref)
		if err != nil || e.State != review.EvidenceRejected || e.Class != string(want.class) || e.Upstream != want.upstream {
			t.Errorf("%s: %+v, %v", said, e, err)
		}
	}
}

func (ref messageRef) rejectedBy(raw []byte) bool {
	_, ok := ref.rejection(raw)
	return ok
}

// Mailboxes show an empty sender in several ways, and a recipient as xtext.
func TestSpellingsOfABounce(t *testing.T) {
	t.Parallel()
	ref := testRef()
	report := bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+ref.tokens[0]+"\n"+toAnn+"\n")
	for path, want := range map[string]bool{
		"<>": true, "< >": true, "<MAILER-DAEMON>": true, "MAILER-DAEMON": true, "<Mailer-Daemon@mail.example.com>": true, "<postmaster@example.com>": true,
		"<#@[]>": true, "<null>": true, "<mallory@example.com>": false, "<mailer-daemon.x@example.com>": false,
	} {
		if ref.rejectedBy([]byte("Return-Path: "+path+"\n"+report)) != want {
			t.Errorf("Return-Path %s: want a bounce: %t", path, want)
		}
	}
	ref.recipient = "ann+list@example.com"
	for field, want := range map[string]bool{
		"rfc822; ann+list@example.com": true, "RFC822;<Ann+List@example.com>": true, "rfc822; ann+2Blist@example.com": true,
		"ann+list@example.com": true, "rfc822; ann+list@example.com (alias)": true, "rfc822; ann@example.com": false, "": false,
	} {
		if ref.isTo(field) != want {
			t.Errorf("%q is the recipient: want %t", field, want)
		}
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
		found, err := s.find(t.Context(), testRef())
		state := found.state
		if failure.ClassOf(err) != failure.NetworkUnreachable || state == review.EvidenceAccepted {
			t.Errorf("%s: %s, %v", s.name(), state, err)
		}
	}
}

// A server announces the flags of a message while it answers, which are not the message.
func TestFlagsAreNotTheMessage(t *testing.T) {
	t.Parallel()
	ref := testRef()
	fetched := func(number int, at time.Time, token string) string {
		header := "X-Criticizer-Key: " + token + "\r\n" + strings.ReplaceAll(toAnn, "\n", "\r\n") + "\r\n"
		return fmt.Sprintf("* %d FETCH (UID %d INTERNALDATE %q BODY[HEADER.FIELDS (Message-Id X-Criticizer-Key Return-Path From To X-Ms-Journal-Report)] {%d}\r\n%s)\r\n",
			number, number, at.Format("02-Jan-2006 15:04:05 -0700"), len(header), header)
	}
	for flags, want := range map[string]review.EvidenceState{"": review.EvidenceAccepted, "* 2 FETCH (FLAGS (\\Seen))\r\n": review.EvidenceUnknown} {
		box := serveIMAP(t, func(command string, _ func() string) (untagged, answer string) {
			switch {
			case strings.HasPrefix(command, "SELECT"), strings.HasPrefix(command, "EXAMINE"):
				return "* 2 EXISTS\r\n* FLAGS (\\Seen)\r\n* OK [UIDVALIDITY 1] ok\r\n", ""
			case strings.HasPrefix(command, "UID SEARCH"):
				return "* SEARCH\r\n", "" // so that the headers are read
			case strings.HasPrefix(command, "FETCH"):
				return flags + fetched(1, ref.since.Add(-time.Hour), "0123456789abcdef") + fetched(2, ref.since.Add(time.Minute), ref.tokens[0]), ""
			}
			return "", ""
		})
		if found, err := (journal{box}).find(t.Context(), ref); found.state != want || (err == nil) != (flags == "") {
			t.Errorf("flags %q: %s, error %v, want %s", flags, found.state, err, want)
		}
	}
}

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
	box.Server = ServerURL(strings.Replace(string(box.Server), "@", ";AUTH=XOAUTH2@", 1))
	for _, token := range []string{"expired", testPassword + "\n"} {
		box.Password = secret.New(token)
		if strings.HasPrefix(token, testPassword) {
			wantState(t, "valid token", journal{box}, testRef(), review.EvidenceUnknown)
			continue
		}
		_, err := journal{box}.find(t.Context(), testRef())
		checkError(t, err, failure.AuthDenied, "")
	}
}

// A mailbox is opened with the old password, in the second line, only if the server rejects the
// new one (security 9.3.5).
func TestMailboxPasswordRotation(t *testing.T) {
	t.Parallel()
	for lines, class := range map[string]failure.Class{
		testPassword + "\nold\n": "", "new\n" + testPassword: "", "new\nold": failure.AuthDenied,
	} {
		box := serveMailbox(t, nil)
		box.Password = secret.New(lines)
		if err := box.Ping(t.Context()); class == "" && err != nil || class != "" && failure.ClassOf(err) != class {
			t.Errorf("%q: %v, want class %q", lines, err, class)
		}
	}
	for refusal, want := range map[string]int{"NO wrong": 2, "NO [UNAVAILABLE] later": 1} {
		var tried atomic.Int32
		box := serveIMAP(t, func(command string, _ func() string) (untagged, answer string) {
			if strings.HasPrefix(command, "LOGIN") {
				tried.Add(1)
				return "", refusal
			}
			return "", ""
		})
		box.Password = secret.New("new\nold")
		if err := box.Ping(t.Context()); err == nil || int(tried.Load()) != want {
			t.Errorf("%s: tried %d times, error %v, want %d times", refusal, tried.Load(), err, want)
		}
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
