package mail

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

var longAgo = time.Now().Add(-2 * time.Hour)

func expectEvidence(t *testing.T, p *Mailer, k review.DeliveryKey, since time.Time, want review.EvidenceState) {
	t.Helper()
	e, err := p.Lookup(t.Context(), k, since)
	if err != nil {
		t.Fatalf("look up: %v", err)
	}
	if e.State != want || e.Source != "inbox" {
		t.Errorf("evidence %+v, want %s", e, want)
	}
	if id := messageID(k, testDomain); want == review.EvidenceAccepted && e.NotificationID != id {
		t.Errorf("evidence is of %q, want %q", e.NotificationID, id)
	}
}

func TestSentMailArrivesByteForByteAndIsFound(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	var log bytes.Buffer
	p := newInboxMailer(t, slog.New(slog.NewTextHandler(&log, nil)), cfg)
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAbsent)
	id, err := p.Send(t.Context(), findingsReport(), testKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if id != messageID(testKey, testDomain) {
		t.Errorf("notification id %q", id)
	}
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted)
	expectEvidence(t, p, testKey, time.Now(), review.EvidenceAccepted)
	if raw := fetchOnly(t, b); !strings.HasSuffix(raw, string(mime(t, render(t, findingsReport())))) {
		t.Errorf("the inbox got other bytes than were rendered:\n%s", raw)
	}
	if strings.Contains(log.String(), "ann") {
		t.Errorf("the log shows the address: %s", &log)
	}
}

// fetchOnly returns the source of the only message in b.
func fetchOnly(t *testing.T, b *inbox.Inbox) string {
	t.Helper()
	list := get(t, b.URL()+"/api/messages")
	if !strings.Contains(list, `"total":1,`) {
		t.Fatalf("not one message: %s", list)
	}
	_, rest, _ := strings.Cut(list, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return get(t, b.URL()+"/api/messages/"+id+"/raw")
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The first row of the failure matrix in review-notification 8.2: the provider
// accepted and we do not know.
func TestSwallowedConfirmationIsAmbiguousUntilLookedUp(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	if err := b.Inject(inbox.Fault{Stage: inbox.StageKept, Action: inbox.ActionDrop}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := p.Send(t.Context(), findingsReport(), testKey, time.Now())
	checkError(t, err, failure.DeliveryAmbiguous, "")
	expectEvidence(t, p, testKey, began, review.EvidenceAccepted)
}

func TestConnectionLostInsideTheMessageIsAmbiguousToo(t *testing.T) {
	t.Parallel()
	for _, stage := range []inbox.Stage{inbox.StageBody, inbox.StageDot} {
		b, cfg := startInbox(t)
		p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
		if err := b.Inject(inbox.Fault{Stage: stage, Action: inbox.ActionDrop}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := p.Send(t.Context(), findingsReport(), testKey, time.Now())
		checkError(t, err, failure.DeliveryAmbiguous, "")
		expectEvidence(t, p, testKey, began, review.EvidenceAbsent)
		if d := time.Since(began); d < inboxSettle {
			t.Errorf("absence is believed %s after the attempt began", d)
		}
	}
}

// An attempt is over before the inbox's word that it holds nothing is believed.
func TestInboxAttemptEndsInTheWindow(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	_, err := p.Send(t.Context(), findingsReport(), testKey, time.Now().Add(-inboxSettle))
	checkError(t, err, failure.NetworkTimeout, "")
	expectEvidence(t, p, testKey, time.Now().Add(-inboxSettle), review.EvidenceAbsent)
}

func TestSettleWindowEndsWithTheCall(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	e, err := p.Lookup(ctx, testKey, time.Now().Add(time.Hour))
	if err != nil || e.State != review.EvidenceUnknown {
		t.Errorf("evidence %+v, error %v", e, err)
	}
}

// An attempt that was given up on may still be at work: while the server has
// its transaction open, nothing is absent.
func TestOpenTransactionIsNotAbsent(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	if err := b.Inject(inbox.Fault{Stage: inbox.StageDot, Action: inbox.ActionHang, HangMS: 5000}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := p.Send(ctx, findingsReport(), testKey, time.Now())
	checkError(t, err, failure.DeliveryAmbiguous, "")
	expectEvidence(t, p, testKey, longAgo, review.EvidenceUnknown)
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted) // it came through after all
}

func TestInjectedRepliesReachTheCaller(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	for _, tc := range []struct {
		fault inbox.Fault
		class failure.Class
	}{
		{inbox.Fault{Stage: inbox.StageMail, Code: 421, Enhanced: "4.3.2"}, failure.UpstreamUnavailable},
		{inbox.Fault{Stage: inbox.StageRcpt, Code: 450, Enhanced: "4.2.0"}, failure.UpstreamUnavailable},
		{inbox.Fault{Stage: inbox.StageRcpt, Code: 550, Enhanced: "5.1.1"}, failure.RecipientRejected},
		{inbox.Fault{Stage: inbox.StageData, Code: 451, Enhanced: "4.3.0"}, failure.UpstreamUnavailable},
		{inbox.Fault{Stage: inbox.StageDot, Code: 552, Enhanced: "5.3.4"}, failure.TooLarge},
		{inbox.Fault{Stage: inbox.StageDot, Code: 554, Enhanced: "5.7.1"}, failure.RecipientRejected},
	} {
		tc.fault.Action = inbox.ActionReply
		if err := b.Inject(tc.fault); err != nil {
			t.Fatal(err)
		}
		_, err := p.Send(t.Context(), findingsReport(), testKey, time.Now())
		checkError(t, err, tc.class, fmt.Sprintf("%d %s", tc.fault.Code, tc.fault.Enhanced))
	}
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAbsent)
}

func TestSecondCopyIsFoundAndLogged(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	var log bytes.Buffer
	p := newInboxMailer(t, slog.New(slog.NewTextHandler(&log, nil)), cfg)
	for range 2 {
		if _, err := p.Send(t.Context(), findingsReport(), testKey, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	expectEvidence(t, p, testKey, longAgo, review.EvidenceAccepted)
	if !strings.Contains(log.String(), "more than once") || !strings.Contains(log.String(), "copies=2") {
		t.Errorf("no word of the second copy: %s", &log)
	}
}

func TestConcurrentSendsAllArriveOnce(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	p := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg)
	const recipients = 20
	key := func(i int) review.DeliveryKey {
		k := testKey
		k.Recipient = fmt.Sprintf("user%d@example.com", i)
		return k
	}
	var wg sync.WaitGroup
	for i := range recipients {
		wg.Go(func() {
			if _, err := p.Send(t.Context(), findingsReport(), key(i), time.Now()); err != nil {
				t.Errorf("send %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range recipients {
		expectEvidence(t, p, key(i), longAgo, review.EvidenceAccepted)
	}
}

func TestUnansweredLookupIsAnErrorAndUnknown(t *testing.T) {
	t.Parallel()
	_, cfg := startInbox(t)
	for name, tc := range map[string]struct {
		url   string
		class failure.Class
	}{
		"nobody there":    {"http://127.0.0.1:1", failure.NetworkUnreachable},
		"not an inbox":    {cfg.InboxURL + "/nowhere", failure.UpstreamUnavailable},
		"answers in HTML": {cfg.InboxURL + "/?q=", failure.UpstreamInternal},
	} {
		cfg := cfg
		cfg.InboxURL = tc.url
		e, err := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg).Lookup(t.Context(), testKey, longAgo)
		if failure.ClassOf(err) != tc.class || e.State != review.EvidenceUnknown {
			t.Errorf("%s: evidence %+v, error %v, want %s", name, e, err, tc.class)
		}
	}
}

func TestNonASCIIAddressNeedsAServerThatTakesIt(t *testing.T) {
	t.Parallel()
	k := testKey
	k.Recipient = "änn@bücher.example"
	_, cfg := startInbox(t)
	if _, err := newInboxMailer(t, slog.New(slog.DiscardHandler), cfg).Send(t.Context(), findingsReport(), k, time.Now()); err != nil {
		t.Errorf("a server with SMTPUTF8 refuses it: %v", err)
	}
	m, err := Render(findingsReport(), k, testFrom, testDomain)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newSMTP(t, plainConfig(serveScript(t, nil).addr)).Send(t.Context(), m)
	checkError(t, err, failure.RecipientRejected, "")
}
