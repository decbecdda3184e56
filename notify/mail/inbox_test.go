package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

var longAgo = time.Now().Add(-2 * time.Hour)

// startInbox serves an inbox until the test ends, and returns its address for mail.
func startInbox(t *testing.T) (*inbox.Inbox, Config) {
	t.Helper()
	b, err := inbox.Open(slog.New(slog.DiscardHandler), inbox.Config{Dir: t.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	testkit.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return b, plainConfig(b.SMTPAddr())
}

// newInboxMailer returns a mailer for the server of cfg, which the inbox at url is.
func newInboxMailer(t *testing.T, log io.Writer, cfg Config, url string) *Provider {
	t.Helper()
	server := NewServer(slog.New(slog.NewTextHandler(log, nil)), cfg)
	p, err := NewProvider(server, evidenceWith(func(c *EvidenceConfig) { c.Journal.Server = ServerURL(url).as("inbox") }))
	testkit.NoError(t, err)
	return p
}

func expectEvidence(t *testing.T, p *Provider, k review.DeliveryKey, since time.Time, want review.EvidenceState) {
	t.Helper()
	e, err := p.Lookup(t.Context(), k, "", since)
	if err != nil {
		t.Fatalf("look up: %v", err)
	}
	if e.State != want || (e.Source == "inbox") != (want == review.EvidenceAccepted) {
		t.Errorf("evidence %+v, want %s", e, want)
	}
	if id := messageID(testKeys.Token(k), testDomain); want == review.EvidenceAccepted && e.NotificationID != id {
		t.Errorf("evidence of %q, want %q", e.NotificationID, id)
	}
}

// A mail arrives as it was rendered and is found. A second copy is found and logged.
func TestSentMailArrivesUnchangedAndIsFound(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	var log bytes.Buffer
	p := newInboxMailer(t, &log, cfg, b.URL())
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAbsent)
	id, err := p.Send(t.Context(), findingsReport(), testKey, time.Now())
	testkit.NoError(t, err)
	if id != messageID(testToken, testDomain) {
		t.Errorf("notification id %q", id)
	}
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted)
	expectEvidence(t, p, testKey, time.Now(), review.EvidenceAccepted)
	if raw := fetchOnly(t, b); !strings.HasSuffix(raw, string(mime(t, render(t, findingsReport())))) {
		t.Errorf("the inbox has other bytes than were rendered:\n%s", raw)
	}
	_, err = p.Send(t.Context(), findingsReport(), testKey, time.Now())
	testkit.NoError(t, err)
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted)
	if text := log.String(); strings.Contains(text, "ann") || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "copies=2") {
		t.Errorf("the log contains the address, or not the second copy: %s", text)
	}
}

// The mail of a page has only text, and a Message-ID of its own.
func TestMailOfPlainText(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	testkit.NoError(t, newSMTP(t, cfg).SendText(t.Context(), "oncall@example.com", "page-7", "A page", "What to do"))
	raw := fetchOnly(t, b)
	for _, want := range []string{"Message-ID: <page-7@" + testDomain + ">", "To: <oncall@example.com>", "Subject: A page", "text/plain", "What to do"} {
		if !strings.Contains(raw, want) {
			t.Errorf("the mail lacks %q:\n%s", want, raw)
		}
	}
}

// fetchOnly returns the source of the only message in b.
func fetchOnly(t *testing.T, b *inbox.Inbox) string {
	t.Helper()
	var list struct{ Messages []inbox.Entry }
	if err := json.Unmarshal(get(t, b.URL()+"/api/messages"), &list); err != nil || len(list.Messages) != 1 {
		t.Fatalf("not one message: %+v, %v", list, err)
	}
	return string(get(t, b.URL()+"/api/messages/"+list.Messages[0].ID+"/raw"))
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	testkit.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	testkit.NoError(t, err)
	return body
}

// A connection that breaks during or after the message leaves it in doubt, and a
// look-up resolves the doubt (notification 8.2, first row of the failure matrix).
func TestLostConfirmationIsInDoubtUntilLookedUp(t *testing.T) {
	t.Parallel()
	for at, want := range map[inbox.Point]review.EvidenceState{
		inbox.AtBody: review.EvidenceAbsent, inbox.AtDot: review.EvidenceAbsent, inbox.AtKept: review.EvidenceAccepted,
	} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			b, cfg := startInbox(t)
			p := newInboxMailer(t, io.Discard, cfg, b.URL())
			b.Inject(inbox.Fault{At: at})
			began := time.Now()
			_, err := p.Send(t.Context(), findingsReport(), testKey, began)
			checkError(t, err, failure.DeliveryAmbiguous, "")
			if want == review.EvidenceAbsent {
				expectEvidence(t, p, testKey, began, review.EvidenceUnknown)
				began = began.Add(-inboxSettle)
			}
			expectEvidence(t, p, testKey, began, want)
		})
	}
}

// An abandoned attempt may still be in progress: while the server has its
// transaction open, its message is not absent.
func TestOpenTransactionIsNotAbsent(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	p := newInboxMailer(t, io.Discard, cfg, b.URL())
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	b.Inject(inbox.Fault{At: inbox.AtDot, Wait: func() { cancel(); <-release }})
	_, err := p.Send(ctx, findingsReport(), testKey, time.Now())
	checkError(t, err, failure.DeliveryAmbiguous, "")
	_, err = p.Lookup(t.Context(), testKey, "", longAgo)
	checkError(t, err, failure.UpstreamUnavailable, "")
	close(release)
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted) // it was completed after all
}

func TestFailedLookupIsAnErrorAndUnknown(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	serve := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, tc := range map[string]struct {
		url   string
		class failure.Class
	}{
		"no server":       {"http://127.0.0.1:1", failure.NetworkUnreachable},
		"not an inbox":    {serve(http.NotFound), failure.ConfigInvalid},
		"answers in HTML": {serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), failure.UpstreamInternal},
	} {
		e, err := newInboxMailer(t, io.Discard, cfg, tc.url).Lookup(t.Context(), testKey, "", longAgo)
		if failure.ClassOf(err) != tc.class || e.State != review.EvidenceUnknown {
			t.Errorf("%s: evidence %+v, error %v, want %s", name, e, err, tc.class)
		}
	}
}

func TestNonASCIIAddressNeedsSMTPUTF8(t *testing.T) {
	t.Parallel()
	k := testKey
	k.Recipient = "änn@bücher.example"
	b, cfg := startInbox(t)
	if _, err := newInboxMailer(t, io.Discard, cfg, b.URL()).Send(t.Context(), findingsReport(), k, time.Now()); err != nil {
		t.Errorf("a server with SMTPUTF8: %v", err)
	}
	m, err := Render(findingsReport(), k, testToken, testConfig)
	testkit.NoError(t, err)
	_, err = newSMTP(t, plainConfig(serveScript(t, nil).addr)).send(t.Context(), m)
	checkError(t, err, failure.RecipientRejected, "")
}
