package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// A mailSide is the mailer or its fake. fail has the next message fail with a class, after
// the server has kept it if kept is set.
type mailSide struct {
	Provider interface {
		Send(ctx context.Context, r review.Report, key review.DeliveryKey, begun time.Time) (string, error)
		Lookup(ctx context.Context, key review.DeliveryKey, notificationID string, since time.Time) (review.Evidence, error)
	}
	fail   func(class failure.Class, kept bool)
	stop   func() // ends the server: look-ups fail
	copies func(address string) int
}

// The fake that the activities are tested with sends and looks up as the mailer does with
// the embedded inbox: a test with a fake that accepts or finds more proves nothing.
func TestFakeMailIsThatOfTheMailer(t *testing.T) {
	t.Parallel()
	want := exerciseMail(t, realMail(t))
	got := exerciseMail(t, fakeMail())
	if len(want) < 30 || len(got) != len(want) {
		t.Fatalf("%d steps of the fake, %d of the mailer", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d of the fake is\n  %s, of the mailer\n  %s", i, got[i], want[i])
		}
	}
}

func fakeMail() mailSide {
	w := activitiestest.New()
	w.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Source: "fake", Observed: true}) // as the inbox
	return mailSide{
		Provider: w, copies: w.Copies,
		fail: func(class failure.Class, kept bool) {
			at := map[bool]string{false: "Send", true: "Send reply"}[kept]
			w.Fail(at, failure.New(class, errors.New("a fault of the test")))
		},
		stop: func() {
			w.Fail("Lookup", failure.New(failure.NetworkUnreachable, errors.New("a fault of the test")))
		},
	}
}

func realMail(t *testing.T) mailSide {
	t.Helper()
	b, cfg := startInbox(t)
	p := newInboxMailer(t, io.Discard, cfg, b.URL())
	side := mailSide{
		Provider: p,
		fail: func(class failure.Class, kept bool) {
			fault, ok := map[failure.Class]inbox.Fault{
				failure.RecipientRejected:   {At: inbox.AtRcpt, Code: 550, Enhanced: [3]int{5, 1, 1}},
				failure.UpstreamUnavailable: {At: inbox.AtRcpt, Code: 451, Enhanced: [3]int{4, 3, 0}},
				failure.TooLarge:            {At: inbox.AtRcpt, Code: 552, Enhanced: [3]int{5, 3, 4}},
				failure.DeliveryAmbiguous:   {At: map[bool]inbox.Point{false: inbox.AtDot, true: inbox.AtKept}[kept]},
			}[class]
			if !ok {
				t.Fatalf("no fault of the inbox has class %s", class)
			}
			b.Inject(fault)
		},
		copies: func(address string) (n int) {
			var list struct{ Messages []inbox.Entry }
			testkit.NoError(t, json.Unmarshal(get(t, b.URL()+"/api/messages"), &list))
			for _, m := range list.Messages {
				if len(m.To) == 1 && strings.EqualFold(m.To[0], address) {
					n++
				}
			}
			return n
		},
	}
	side.stop = func() { p.witnesses[0] = inboxRecords{"http://127.0.0.1:1"} }
	return side
}

// exerciseMail lists what the side returns for messages that are accepted, rejected, in
// doubt, and looked up under their own and under other keys.
func exerciseMail(t *testing.T, s mailSide) (steps []string) {
	t.Helper()
	ids := map[string]string{} // by key
	note := func(what string, err error, seen ...any) {
		class := failure.Class("")
		if err != nil {
			class = failure.ClassOf(err)
		}
		if strings.Contains(fmt.Sprint(err), "@") {
			t.Errorf("%s: the error has an address: %v", what, err)
		}
		steps = append(steps, fmt.Sprintf("%s: %s %v", what, class, seen))
	}
	key := func(recipient string, v review.Version) review.DeliveryKey {
		return review.DeliveryKey{Changelist: 4711, Recipient: recipient, Version: v}
	}
	send := func(what string, k review.DeliveryKey, change func(*review.Report, *time.Time)) {
		r, begun := findingsReport(), time.Now()
		r.Version = k.Version
		change(&r, &begun)
		id, err := s.Provider.Send(t.Context(), r, k, begun)
		if err == nil {
			ids[strings.ToLower(fmt.Sprint(k))] = id
		}
		note(what, err, id == "", strings.Contains(id, strings.Split(k.Recipient, "@")[0]), s.copies(k.Recipient))
	}
	plain := func(*review.Report, *time.Time) {}
	look := func(what string, k review.DeliveryKey) {
		for range 2 { // a look-up changes nothing
			e, err := s.Provider.Lookup(t.Context(), k, "", longAgo)
			id, sent := ids[strings.ToLower(fmt.Sprint(k))]
			note("look-up of "+what, err, e.State, e.Observed, e.AskAgain.IsZero(), e.Source != "", e.NotificationID != "", sent && e.NotificationID == id)
		}
	}
	ann := key("ann@example.com", 1)
	look("one before it is sent", ann)
	send("accepted", ann, plain)
	look("it", ann)
	look("it, in capitals", key("Ann@Example.com", 1))
	look("that of another version", key("ann@example.com", 2))
	look("that of another recipient", key("anna@example.com", 1))
	send("accepted again", ann, plain)
	look("two copies", ann)
	send("the next version", key("ann@example.com", 2), plain)
	look("the next version", key("ann@example.com", 2))

	for i, fault := range []struct {
		class failure.Class
		kept  bool
	}{
		{failure.RecipientRejected, false}, {failure.UpstreamUnavailable, false}, {failure.TooLarge, false},
		{failure.DeliveryAmbiguous, false}, {failure.DeliveryAmbiguous, true},
	} {
		k := key(fmt.Sprintf("bob%d@example.com", i), 1)
		what := fmt.Sprintf("fault %d, %s", i, fault.class)
		s.fail(fault.class, fault.kept)
		send(what, k, plain)
		look(what, k)
		if !fault.kept {
			send(what+", sent again", k, plain)
			look(what+", sent again", k)
		}
	}
	cid := key("cid@example.com", 1)
	send("begun too long ago", cid, func(_ *review.Report, begun *time.Time) { *begun = longAgo })
	send("of another changelist", cid, func(r *review.Report, _ *time.Time) { r.Changelist++ })
	send("of another version", cid, func(r *review.Report, _ *time.Time) { r.Version++ })
	send("findings without any", cid, func(r *review.Report, _ *time.Time) { r.Findings = nil })
	send("clean with findings", cid, func(r *review.Report, _ *time.Time) { r.Outcome = review.OutcomeClean })
	send("to no address", key("cid", 1), plain)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := s.Provider.Send(ended, findingsReport(), cid, time.Now())
	note("after the end of its context", err, s.copies(cid.Recipient))
	look("what was not sent", cid)
	s.stop()
	e, err := s.Provider.Lookup(t.Context(), ann, "", longAgo)
	note("look-up at a server that is down", err, e.State, e.NotificationID)
	return steps
}
