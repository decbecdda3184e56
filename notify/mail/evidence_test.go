package mail

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// A testimony is a source that says what it is told to.
type testimony struct {
	state  review.EvidenceState
	copies int
	err    error
}

func (testimony) name() string { return "test" }

func (t testimony) find(context.Context, messageRef) (review.EvidenceState, int, error) {
	return t.state, t.copies, t.err
}

var (
	seen     = testimony{state: review.EvidenceAccepted, copies: 1}
	bounced  = testimony{state: review.EvidenceRejected}
	notThere = testimony{state: review.EvidenceAbsent}
	blind    = testimony{state: review.EvidenceUnknown}
	broken   = testimony{state: review.EvidenceUnknown, err: failure.Errorf(failure.NetworkUnreachable, "down")}
)

// Review-notification 8.2: what is absent may be sent again, so absence takes
// all that can be had; acceptance takes one word.
func TestSourcesAreWeighed(t *testing.T) {
	t.Parallel()
	recently := time.Now().Add(-5 * time.Minute)
	for name, tc := range map[string]struct {
		bounces   source
		witnesses []source
		since     time.Time
		resend    bool
		want      review.EvidenceState
		later     bool // it is worth asking again
		class     failure.Class
	}{
		"one witness is enough":                  {notThere, []source{notThere, seen}, longAgo, false, review.EvidenceAccepted, false, ""},
		"a blind one takes nothing away":         {nil, []source{blind, seen}, longAgo, false, review.EvidenceAccepted, false, ""},
		"a broken one takes nothing away":        {broken, []source{seen, broken}, longAgo, false, review.EvidenceAccepted, false, ""},
		"a bounce outranks acceptance":           {bounced, []source{seen}, longAgo, false, review.EvidenceRejected, false, ""},
		"a bounce in the log does, too":          {nil, []source{seen, bounced}, longAgo, false, review.EvidenceRejected, false, ""},
		"absent for all":                         {notThere, []source{notThere, notThere}, longAgo, false, review.EvidenceAbsent, false, ""},
		"absent, but the window is open":         {notThere, []source{notThere}, recently, false, review.EvidenceUnknown, true, ""},
		"one that is blind":                      {nil, []source{notThere, blind}, longAgo, false, review.EvidenceUnknown, false, ""},
		"one that is blind, the window is open":  {nil, []source{notThere, blind}, recently, false, review.EvidenceUnknown, true, ""},
		"one that is blind, resend":              {nil, []source{notThere, blind}, longAgo, true, review.EvidenceAbsent, false, ""},
		"one that is broken":                     {nil, []source{notThere, broken}, longAgo, false, review.EvidenceUnknown, false, failure.NetworkUnreachable},
		"one that is broken, resend":             {nil, []source{broken}, longAgo, true, review.EvidenceUnknown, false, failure.NetworkUnreachable},
		"bounces are broken":                     {broken, []source{notThere}, longAgo, false, review.EvidenceUnknown, false, failure.NetworkUnreachable},
		"no bounce is no evidence":               {notThere, nil, longAgo, false, review.EvidenceUnknown, false, ""},
		"no source at all":                       {nil, nil, recently, false, review.EvidenceUnknown, false, ""},
		"no source, resend":                      {nil, nil, longAgo, true, review.EvidenceAbsent, false, ""},
		"no source, resend, the window is open":  {nil, nil, recently, true, review.EvidenceUnknown, true, ""},
		"no source but a bounce, whatever else":  {bounced, nil, recently, true, review.EvidenceRejected, false, ""},
		"nobody knows when the attempt began":    {nil, []source{notThere}, time.Time{}, false, review.EvidenceAbsent, false, ""},
		"the attempt began in the future: skew?": {nil, []source{notThere}, time.Now().Add(time.Hour), false, review.EvidenceUnknown, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &EvidencedProvider{
				SMTPProvider: newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}), lg: slog.New(slog.DiscardHandler),
				cfg: EvidenceConfig{ResendInDoubt: tc.resend}.withDefaults(), bounces: tc.bounces, witnesses: tc.witnesses,
			}
			e, err := p.query(t.Context(), messageRef{id: "crz1.x@example.com", since: tc.since})
			if tc.class != "" && failure.ClassOf(err) != tc.class || tc.class == "" && err != nil {
				t.Fatalf("error %v, want class %q", err, tc.class)
			}
			if e.State != tc.want || e.AskAgain.IsZero() == tc.later {
				t.Errorf("%+v, want %s, later %t", e, tc.want, tc.later)
			}
			if e.Observed != (e.State == review.EvidenceAbsent && !tc.resend) {
				t.Errorf("%+v: that sending again is allowed is not an observation", e)
			}
			if (e.State == review.EvidenceAccepted) != (e.NotificationID == "crz1.x@example.com") {
				t.Errorf("%+v: an accepted message has its id, no other has", e)
			}
		})
	}
}

// A copy for the journal can wait in the server's queue long after the settle
// window. A server's own log tells of it, a journal alone does not.
func TestJournalAloneIsSlowToCallAbsent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ago      time.Duration
		log      string
		resend   bool
		want     review.EvidenceState
		observed bool
	}{
		"a journal alone":             {30 * time.Minute, "", false, review.EvidenceUnknown, false},
		"a journal alone, much later": {2 * time.Hour, "", false, review.EvidenceAbsent, true},
		"a journal alone, resend":     {30 * time.Minute, "", true, review.EvidenceAbsent, false},
		"with the log":                {30 * time.Minute, "mail.log", false, review.EvidenceAbsent, true},
		"with the log, in the window": {5 * time.Minute, "mail.log", false, review.EvidenceUnknown, false},
	} {
		p := &EvidencedProvider{
			SMTPProvider: newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}),
			cfg:          EvidenceConfig{ResendInDoubt: tc.resend, MTALog: tc.log}.withDefaults(), witnesses: []source{notThere},
		}
		e, err := p.query(t.Context(), messageRef{since: time.Now().Add(-tc.ago)})
		if err != nil || e.State != tc.want || e.Observed != tc.observed {
			t.Errorf("%s: %+v, %v, want %s, observed %t", name, e, err, tc.want, tc.observed)
		}
	}
}

// A slowWitness sees a message only when it is asked again.
type slowWitness struct{ asked *int }

func (slowWitness) name() string { return "test" }

func (s slowWitness) find(context.Context, messageRef) (review.EvidenceState, int, error) {
	*s.asked++
	if *s.asked == 1 {
		return review.EvidenceAbsent, 0, nil
	}
	return review.EvidenceAccepted, 1, nil
}

// A mailbox may answer from an index that is behind: before anything is sent
// again, it is asked twice.
func TestAbsenceTakesTwoLooks(t *testing.T) {
	t.Parallel()
	asked := 0
	p := &EvidencedProvider{
		SMTPProvider: newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}), lg: slog.New(slog.DiscardHandler),
		cfg: EvidenceConfig{}.withDefaults(), witnesses: []source{slowWitness{&asked}},
	}
	if e, err := p.Lookup(t.Context(), testKey, longAgo); err != nil || e.State != review.EvidenceAccepted {
		t.Errorf("%+v, %v after %d looks", e, err, asked)
	}
}

// A bounce does not go away when the mailbox is repaired and an operator has the
// mail sent again. What is seen then may be of either attempt.
func TestEarlierBounceTellsNothing(t *testing.T) {
	t.Parallel()
	p := &EvidencedProvider{
		SMTPProvider: newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}),
		cfg:          EvidenceConfig{ResendInDoubt: true}.withDefaults(), bounces: blind, witnesses: []source{seen},
	}
	e, err := p.query(t.Context(), messageRef{since: longAgo})
	if err != nil || e.State != review.EvidenceUnknown || !e.AskAgain.IsZero() {
		t.Errorf("%+v, %v, want that nothing will ever tell", e, err)
	}
}

// A source that is down must not use up the attempts within seconds.
func TestBrokenSourceIsGivenTime(t *testing.T) {
	t.Parallel()
	p := &EvidencedProvider{SMTPProvider: newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}), witnesses: []source{broken}}
	_, err := p.Lookup(t.Context(), testKey, longAgo)
	e, ok := errors.AsType[*failure.Error](err)
	if !ok || e.RetryAfter < 10*time.Second || e.Class != failure.NetworkUnreachable {
		t.Errorf("%v, want one that is retried after some time", err)
	}
}

func TestMissingEvidenceIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "mail.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cfg  EvidenceConfig
		warn bool
	}{
		"none":         {EvidenceConfig{}, true},
		"only bounces": {EvidenceConfig{Bounces: &Mailbox{Host: "127.0.0.1", TLS: TLSNone, Username: "u", Password: secretOf("x")}}, true},
		"a log":        {EvidenceConfig{MTALog: log}, false},
	} {
		var out bytes.Buffer
		_, err := NewEvidencedProvider(slog.New(slog.NewTextHandler(&out, nil)), newSMTP(t, Config{From: testFrom, Host: "127.0.0.1"}), tc.cfg)
		if err != nil || strings.Contains(out.String(), "resend_in_doubt=false") != tc.warn {
			t.Errorf("%s: error %v, log %q", name, err, &out)
		}
	}
}

// An attempt that takes too long ends before the dot: it must not be completed
// when the settle window is over and another may have begun.
func TestLateHandoverIsGivenUpBeforeTheDot(t *testing.T) {
	t.Parallel()
	server := serveScript(t, map[string]string{"RCPT": "hang"})
	p := newSMTP(t, plainConfig(server.addr)).withSendLimit(200 * time.Millisecond)
	began := time.Now()
	_, err := p.Send(t.Context(), render(t, findingsReport()))
	checkError(t, err, failure.NetworkTimeout, "")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("given up after %s", took)
	}
}

// The wait for the reply to the dot is not part of it.
func TestHandoverEndsWithTheDot(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	b.Inject(inbox.Fault{Stage: inbox.StageDot, Hang: 600 * time.Millisecond})
	p := newSMTP(t, cfg).withSendLimit(300 * time.Millisecond)
	if _, err := p.Send(t.Context(), render(t, findingsReport())); err != nil {
		t.Errorf("a slow confirmation: %v", err)
	}
}

// A server that reads the whole message and refuses it may have queued it, so
// it is looked up before anybody believes the refusal (review-notification 8.2).
func TestRefusalOfTheWholeMessageIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at, reply string
		witness   testimony
		class     failure.Class // of the error; none: sent
	}{
		"451, and it was accepted":     {"dot", "451 4.3.0 later", seen, ""},
		"554, and it was accepted":     {"dot", "554 5.7.1 no", seen, ""},
		"451, and it is not there yet": {"dot", "451 4.3.0 later", notThere, failure.DeliveryAmbiguous},
		"554, and it is not there yet": {"dot", "554 5.7.1 no", notThere, failure.DeliveryAmbiguous},
		"451, and nobody can tell":     {"dot", "451 4.3.0 later", blind, failure.DeliveryAmbiguous},
		"451, and the look-up fails":   {"dot", "451 4.3.0 later", broken, failure.DeliveryAmbiguous},
		"a refusal before the message": {"RCPT", "550 5.1.1 no", seen, failure.RecipientRejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, map[string]string{tc.at: tc.reply})
			p := &EvidencedProvider{
				SMTPProvider: newSMTP(t, plainConfig(server.addr)), lg: slog.New(slog.DiscardHandler),
				cfg: EvidenceConfig{}.withDefaults(), witnesses: []source{tc.witness},
			}
			m := render(t, findingsReport())
			m.Begun = time.Now().Add(-recordTime) // there is nothing to wait for
			id, err := p.Send(t.Context(), m)
			switch {
			case tc.class == "" && (err != nil || id != m.ID):
				t.Errorf("id %q, error %v; want it sent", id, err)
			case tc.class != "" && (err == nil || failure.ClassOf(err) != tc.class):
				t.Errorf("error %v, want class %s", err, tc.class)
			case tc.class == failure.DeliveryAmbiguous:
				checkDoubt(t, err)
			}
		})
	}
}

// checkDoubt fails unless err says what the server's own verdict was, for when
// no look-up finds the message, and to wait for that.
func checkDoubt(t *testing.T, err error) {
	t.Helper()
	doubt, _ := errors.AsType[*failure.Error](err)
	verdict, ok := errors.AsType[*failure.Error](doubt.Err)
	if !ok || verdict.Class == failure.DeliveryAmbiguous || verdict.Upstream == "" || doubt.Upstream != verdict.Upstream {
		t.Errorf("%v is about no refusal", err)
	}
}
