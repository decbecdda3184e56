package mail

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// A fakeSource returns fixed evidence.
type fakeSource struct {
	state  review.EvidenceState
	copies int
	err    error
}

func (fakeSource) name() string { return "test" }

func (s fakeSource) find(context.Context, messageRef) (finding, error) {
	return finding{state: s.state, copies: s.copies, rejection: newReply(stepRcpt, 550, "5.1.1 gone")}, s.err
}

var (
	accepted = fakeSource{state: review.EvidenceAccepted, copies: 1}
	bounced  = fakeSource{state: review.EvidenceRejected, copies: 1}
	absent   = fakeSource{state: review.EvidenceAbsent}
	blind    = fakeSource{state: review.EvidenceUnknown}
	broken   = fakeSource{state: review.EvidenceUnknown, err: failure.Errorf(failure.NetworkUnreachable, "down")}
)

// evidenced returns a provider with the witnesses for the server of cfg.
func evidenced(t *testing.T, cfg Config, witnesses ...source) *Provider {
	t.Helper()
	return &Provider{Server: newSMTP(t, cfg), settle: replyTimeout, witnesses: witnesses}
}

var unused = Config{From: testFrom, Server: "smtp://127.0.0.1", Keys: testKeys}

// An absent message may be sent again, so absence requires all witnesses.
// Acceptance requires one (notification 8.2).
func TestSourcesAreWeighed(t *testing.T) {
	t.Parallel()
	recently := time.Now().Add(-5 * time.Minute)
	for name, tc := range map[string]struct {
		bounces   source
		witnesses []source
		since     time.Time
		want      review.EvidenceState
		later     bool // another look-up may have another result
		class     failure.Class
	}{
		"one witness is enough":          {absent, []source{absent, accepted}, longAgo, review.EvidenceAccepted, false, ""},
		"one blind, one accepted":        {nil, []source{blind, accepted}, longAgo, review.EvidenceAccepted, false, ""},
		"one broken, one accepted":       {broken, []source{accepted, broken}, longAgo, review.EvidenceAccepted, false, ""},
		"a bounce outranks acceptance":   {bounced, []source{accepted}, longAgo, review.EvidenceRejected, false, ""},
		"a bounce in the log does too":   {nil, []source{accepted, bounced}, longAgo, review.EvidenceRejected, false, ""},
		"absent in all":                  {absent, []source{absent, absent}, longAgo, review.EvidenceAbsent, false, ""},
		"absent in the settle window":    {absent, []source{absent}, recently, review.EvidenceUnknown, true, ""},
		"one blind":                      {nil, []source{absent, blind}, longAgo, review.EvidenceUnknown, false, ""},
		"one blind in the settle window": {nil, []source{absent, blind}, recently, review.EvidenceUnknown, true, ""},
		"one broken":                     {nil, []source{absent, broken}, longAgo, review.EvidenceUnknown, false, failure.NetworkUnreachable},
		"bounces are broken":             {broken, []source{absent}, longAgo, review.EvidenceUnknown, false, failure.NetworkUnreachable},
		"no bounce is not evidence":      {absent, nil, longAgo, review.EvidenceUnknown, false, ""},
		"no source":                      {nil, nil, recently, review.EvidenceUnknown, false, ""},
		"its key is gone":                {nil, []source{absent}, longAgo, review.EvidenceUnknown, false, ""},
		"only a bounce, resend":          {bounced, nil, recently, review.EvidenceRejected, false, ""},
		"start of the attempt unknown":   {nil, []source{absent}, time.Time{}, review.EvidenceAbsent, false, ""},
		"start in the future, by skew":   {nil, []source{absent}, time.Now().Add(time.Hour), review.EvidenceUnknown, true, ""},
		// The bounce of an earlier attempt stays, so other evidence may be of that attempt.
		"bounce of an earlier attempt": {blind, []source{accepted}, longAgo, review.EvidenceUnknown, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := evidenced(t, unused, tc.witnesses...)
			p.bounces = tc.bounces
			e, err := p.query(t.Context(), messageRef{tokens: []string{"x"}, domain: testDomain, since: tc.since, covered: name != "its key is gone"})
			if tc.class != "" && failure.ClassOf(err) != tc.class || tc.class == "" && err != nil {
				t.Fatalf("error %v, want class %q", err, tc.class)
			}
			if e.State != tc.want || e.AskAgain.IsZero() == tc.later {
				t.Errorf("%+v, want %s, later %t", e, tc.want, tc.later)
			}
			if e.Observed != (e.State == review.EvidenceAbsent) {
				t.Errorf("%+v: absence is observed", e)
			}
			if (e.State == review.EvidenceAccepted) != (e.NotificationID == "crz1.x@example.com") {
				t.Errorf("%+v: an accepted message has its id, no other has", e)
			}
		})
	}
}

// A copy for the journal can wait in the server's queue long after the settle
// window. The log shows that, a journal alone does not.
func TestJournalAloneNeedsTheQueueTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ago      time.Duration
		log      bool
		want     review.EvidenceState
		observed bool
	}{
		{30 * time.Minute, false, review.EvidenceUnknown, false},
		{2 * time.Hour, false, review.EvidenceAbsent, true},
		{30 * time.Minute, true, review.EvidenceAbsent, true},
		{5 * time.Minute, true, review.EvidenceUnknown, false},
	} {
		p := evidenced(t, unused, absent)
		p.showsQueue = tc.log
		e, err := p.query(t.Context(), messageRef{tokens: []string{"x"}, since: time.Now().Add(-tc.ago), covered: true})
		if err != nil || e.State != tc.want || e.Observed != tc.observed {
			t.Errorf("%+v: %+v, %v", tc, e, err)
		}
	}
}

// A slowSource shows a message from the second query on.
type slowSource struct{ queries *int }

func (slowSource) name() string { return "test" }

func (s slowSource) find(context.Context, messageRef) (finding, error) {
	*s.queries++
	if *s.queries == 1 {
		return finding{state: review.EvidenceAbsent}, nil
	}
	return finding{state: review.EvidenceAccepted, copies: 1}, nil
}

// A mailbox may answer from an index that is behind, so absence needs two queries.
func TestAbsenceNeedsTwoQueries(t *testing.T) {
	t.Parallel()
	queries := 0
	if e, err := evidenced(t, unused, slowSource{&queries}).Lookup(t.Context(), testKey, "", longAgo); err != nil || e.State != review.EvidenceAccepted {
		t.Errorf("%+v, %v after %d queries", e, err, queries)
	}
}

func TestWaitForEvidenceEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	if e, err := evidenced(t, unused, absent).Lookup(ctx, testKey, "", longAgo); failure.ClassOf(err) != failure.NetworkTimeout || e.State != review.EvidenceUnknown {
		t.Errorf("evidence %+v, error %v", e, err)
	}
}

// A server may reject a message that it has queued, and records appear seconds after the
// message: neither costs an attempt, nor the wait for the end of the settle window.
func TestAcceptanceIsFoundWithinSeconds(t *testing.T) {
	t.Parallel()
	late := evidenced(t, unused, &laterSource{})
	if e, err := late.Lookup(t.Context(), testKey, "", time.Now()); err != nil || e.State != review.EvidenceAccepted {
		t.Errorf("after a lost reply: %+v, %v", e, err)
	}
	rejecting := evidenced(t, plainConfig(serveScript(t, map[string]string{"dot": "451 4.3.0 later"}).addr), &laterSource{})
	if id, err := rejecting.Send(t.Context(), findingsReport(), testKey, time.Now()); err != nil || id != messageID(testToken, testDomain) {
		t.Errorf("after a rejection: %q, %v", id, err)
	}
}

// A laterSource has the message from its second query on.
type laterSource struct{ queries int }

func (*laterSource) name() string { return "later" }

func (s *laterSource) find(ctx context.Context, ref messageRef) (finding, error) {
	if s.queries++; s.queries == 1 {
		return absent.find(ctx, ref)
	}
	return accepted.find(ctx, ref)
}

// An attempt ends before a look-up trusts absence. Without a witness nothing can be looked up,
// which the log says at the start.
func TestNewProvider(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "mail.log")
	testkit.NoError(t, os.WriteFile(log, nil, 0o600))
	for name, tc := range map[string]struct {
		change func(*EvidenceConfig)
		warn   bool
	}{
		"none":         {func(*EvidenceConfig) {}, true},
		"only bounces": {func(c *EvidenceConfig) { c.Bounces.Server = "imap://u@127.0.0.1" }, true},
		"a log":        {func(c *EvidenceConfig) { c.MTALog = log }, false},
	} {
		var out bytes.Buffer
		cfg := evidenceWith(tc.change)
		cfg.Settle = time.Minute
		p, err := NewProvider(NewServer(slog.New(slog.NewTextHandler(&out, nil)), unused), cfg)
		testkit.NoError(t, err)
		if p.sendLimit != 30*time.Second || strings.Contains(out.String(), "no evidence for mail") != tc.warn {
			t.Errorf("%s: limit %s, log %q", name, p.sendLimit, &out)
		}
	}
}

// A source that is down must not use up the attempts within seconds.
func TestBrokenSourceDelaysTheRetry(t *testing.T) {
	t.Parallel()
	_, err := evidenced(t, unused, broken).Lookup(t.Context(), testKey, "", longAgo)
	e, ok := errors.AsType[*failure.Error](err)
	if !ok || e.RetryAfter < 10*time.Second || e.Class != failure.NetworkUnreachable {
		t.Errorf("%v, want an error with a retry delay", err)
	}
}

// An attempt that takes too long ends before the dot: it must not complete after
// the settle window, when another attempt may have started.
func TestLateAttemptEndsBeforeTheDot(t *testing.T) {
	t.Parallel()
	server := serveScript(t, map[string]string{"RCPT": "hang"})
	p := newSMTP(t, plainConfig(server.addr))
	p.sendLimit = 200 * time.Millisecond
	_, err := p.send(t.Context(), render(t, findingsReport()))
	checkError(t, err, failure.NetworkTimeout, "")
}

// The limit does not include the wait for the reply to the dot.
func TestSendLimitEndsWithTheDot(t *testing.T) {
	t.Parallel()
	for limit := 300 * time.Millisecond; ; limit *= 2 { // a busy machine may not reach the dot in time
		b, cfg := startInbox(t)
		var reached atomic.Bool
		b.Inject(inbox.Fault{At: inbox.AtDot, Wait: func() { reached.Store(true); time.Sleep(limit) }})
		p := newSMTP(t, cfg)
		p.sendLimit = limit
		_, err := p.send(t.Context(), render(t, findingsReport()))
		if !reached.Load() && limit < time.Minute {
			continue
		}
		if err != nil {
			t.Errorf("a slow confirmation: %v", err)
		}
		return
	}
}

// A server that reads the whole message and rejects it may have queued it, so the
// message is looked up before the rejection counts (notification 8.2). The error wraps the
// server's rejection.
func TestRejectionOfTheWholeMessageIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at, reply       string
		witnesses       []source
		class, rejected failure.Class // of the error, and of the one it wraps
	}{
		"for now":                        {"dot", "451 4.3.0 later", []source{absent}, failure.DeliveryAmbiguous, failure.UpstreamUnavailable},
		"for good":                       {"dot", "554 5.6.0 no", []source{absent}, failure.DeliveryAmbiguous, failure.ContentPolicy},
		"for good, and nothing can tell": {"dot", "554 5.6.0 no", nil, failure.ContentPolicy, ""},
		"before the message":             {"RCPT", "550 5.1.1 no", []source{absent}, failure.RecipientRejected, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := evidenced(t, plainConfig(serveScript(t, map[string]string{tc.at: tc.reply}).addr), tc.witnesses...)
			_, err := p.Send(t.Context(), findingsReport(), testKey, time.Now().Add(-recordTime)) // the look-up does not wait
			checkError(t, err, tc.class, tc.reply[:len("550 5.1.1")])
			if tc.at == "dot" && !strings.Contains(err.Error(), " to the message: ") {
				t.Errorf("%v does not name the step", err)
			}
			e, _ := errors.AsType[*failure.Error](err)
			inner, _ := errors.AsType[*failure.Error](e.Err)
			if tc.rejected != "" && (inner == nil || inner.Class != tc.rejected || e.RetryAfter < replyTimeout-time.Minute) {
				t.Errorf("%v wraps %v, retry after %s", err, inner, e.RetryAfter)
			}
		})
	}
}
