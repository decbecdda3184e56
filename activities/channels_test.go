package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A chat is a place that reviews are told to.
type chat struct {
	got      []review.DeliveryKey
	fail     error
	lookedUp int
	evidence review.Evidence
}

func (c *chat) Send(_ context.Context, _ review.Report, key review.DeliveryKey, _ time.Time) (string, error) {
	c.got = append(c.got, key)
	return "chat-1", c.fail
}

func (c *chat) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	c.lookedUp++
	return c.evidence, nil
}

// tellsChat adds a chat to the channels of the stage.
func (m mailing) tellsChat(clean bool) *chat {
	c := &chat{}
	m.stage.Channels = []activities.Channel{{Name: review.ChannelWebhook, Post: c, Clean: clean}}
	return c
}

func TestChannelsAreToldOnceBesidesThePeople(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.tellsChat(false)
	first, err := m.notify()
	if err != nil || first.Sent != 3 {
		t.Fatalf("first %+v, %v", first, err)
	}
	again, err := m.notify()
	if err != nil || again.Sent != 0 || again.Already != 3 {
		t.Errorf("again %+v, %v", again, err)
	}
	if len(chat.got) != 1 || chat.got[0].Channel() != review.ChannelWebhook || m.world.Copies(alice) != 1 || m.world.Copies("webhook") != 0 {
		t.Errorf("the chat got %+v, the mail server a message for it: %d", chat.got, m.world.Copies("webhook"))
	}
}

func TestChannelInDoubtIsAskedBeforeItIsToldAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		evidence review.Evidence
		copies   int
		status   review.DeliveryStatus
	}{
		"it cannot tell": {review.Evidence{State: review.EvidenceUnknown}, 1, review.DeliveryHeld},
		"it has it":      {review.Evidence{State: review.EvidenceAccepted, NotificationID: "7"}, 1, review.DeliverySent},
		"it has it not":  {review.Evidence{State: review.EvidenceAbsent}, 2, review.DeliverySent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			chat := m.tellsChat(false)
			chat.fail = failure.Errorf(failure.DeliveryAmbiguous, "no answer")
			if _, err := m.notify(); err == nil {
				t.Fatal("the stage succeeded without knowing")
			}
			chat.fail, chat.evidence = nil, tt.evidence
			_, err := m.notify()
			rows, _ := m.world.PrepareDeliveries(t.Context(), 4711, 1, nil)
			row := rows[0]
			for _, r := range rows {
				if r.Key.Channel() == review.ChannelWebhook {
					row = r
				}
			}
			if len(chat.got) != tt.copies || chat.lookedUp != 1 || row.Status != tt.status || (err != nil) != (tt.status == review.DeliveryHeld) {
				t.Errorf("%d copies, looked up %d times, row %+v, error %v", len(chat.got), chat.lookedUp, row, err)
			}
			if m.world.Copies(alice) != 1 || m.world.Copies(bob) != 1 {
				t.Error("the people were told again, or not")
			}
		})
	}
}

func TestCleanReviewsAreToldToChannelsThatWantThem(t *testing.T) {
	t.Parallel()
	for _, wants := range []bool{false, true} {
		m := newMailing(t)
		chat := m.tellsChat(wants)
		body, err := json.Marshal(review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomeClean})
		if err != nil {
			t.Fatal(err)
		}
		if m.input, err = m.world.Artifacts(review.NamespaceReport).Put(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		if _, err := m.notify(); err != nil || (len(chat.got) == 1) != wants {
			t.Errorf("wants clean reviews: %t, got %+v, error %v", wants, chat.got, err)
		}
	}
}

func TestRowOfAChannelThatIsGoneIsNotMailed(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.tellsChat(false).fail = failure.Errorf(failure.RateLimited, "later")
	if _, err := m.notify(); err == nil {
		t.Fatal("told")
	}
	m.stage.Channels = nil
	_, err := m.notify()
	if got := classOf(err); got != failure.ConfigInvalid || m.world.Copies("webhook") != 0 {
		t.Errorf("error %v, %d mails to a channel", err, m.world.Copies("webhook"))
	}
}

// tellApart is what the workflow does: the mails, and then each channel that is open.
func (m mailing) tellApart(t *testing.T) (mailed, told error) {
	t.Helper()
	p := activities.StageParams{Request: request, Input: m.input, ChannelsApart: true}
	var result activities.NotifyResult
	value, mailed := m.env.ExecuteActivity(m.stage.Notify, p)
	if mailed == nil {
		mailed = value.Get(&result)
	} else {
		result.Open = activities.OpenChannels(mailed)
	}
	telling := &activities.Telling{Notifying: m.stage}
	for _, c := range result.Open {
		m.env.RegisterActivity(telling)
		_, err := m.env.ExecuteActivity(telling.TellChannel, activities.TellParams{StageParams: p, ChannelRow: c})
		told = errors.Join(told, err)
	}
	return mailed, told
}

// Wherever an attempt to tell a channel ends, the people have one mail each, and
// the channel is told once, or held where it cannot be asked.
func TestChannelApartIsToldOnceWhereverAnAttemptEnds(t *testing.T) {
	t.Parallel()
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	for name, tt := range map[string]struct {
		op       string // of the outbox, that fails once the mails are sent
		chat     error
		evidence review.Evidence
		first    failure.Class
		copies   int
		status   review.DeliveryStatus
	}{
		"before the begin":                    {"BeginDelivery", nil, review.Evidence{}, failure.DatabaseUnavailable, 1, review.DeliverySent},
		"it cannot be reached":                {"", failure.Errorf(failure.NetworkUnreachable, "refused"), review.Evidence{}, failure.NetworkUnreachable, 2, review.DeliverySent},
		"no answer, and it has it":            {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceAccepted}, failure.DeliveryAmbiguous, 1, review.DeliverySent},
		"no answer, and it has it not":        {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceAbsent}, failure.DeliveryAmbiguous, 2, review.DeliverySent},
		"no answer, and it cannot be asked":   {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 1, review.DeliveryHeld},
		"before the mark, and it has it":      {"MarkSent", nil, review.Evidence{State: review.EvidenceAccepted}, failure.DatabaseUnavailable, 1, review.DeliverySent},
		"before the mark, and nobody can say": {"MarkSent", nil, review.Evidence{State: review.EvidenceUnknown}, failure.DatabaseUnavailable, 1, review.DeliveryHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			chat := m.tellsChat(false)
			chat.fail, chat.evidence = tt.chat, tt.evidence
			if tt.op != "" {
				m.world.Fail(tt.op, nil, nil, down) // after those of alice and bob
			}
			if mailed, told := m.tellApart(t); mailed != nil || classOf(told) != tt.first {
				t.Fatalf("mails ended with %v, the chat with %v, want %s", mailed, told, tt.first)
			}
			chat.fail = nil
			mailed, told := m.tellApart(t)
			if mailed != nil || (told != nil) != (tt.status == review.DeliveryHeld) {
				t.Errorf("again: mails ended with %v, the chat with %v", mailed, told)
			}
			m.wantCopies(t, 1, 1)
			if got := m.rowOf(review.ChannelWebhook); len(chat.got) != tt.copies || got.Status != tt.status {
				t.Errorf("%d posts and a row that is %s, want %d and %s", len(chat.got), got.Status, tt.copies, tt.status)
			}
		})
	}
}

func (m mailing) rowOf(c review.Channel) review.Delivery {
	for _, row := range m.world.Rows() {
		if row.Key.Channel() == c {
			return row
		}
	}
	return review.Delivery{}
}

func TestMailsThatFailDoNotKeepAChannelFromBeingTold(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.tellsChat(false)
	m.world.Fail("Send", failure.Errorf(failure.RecipientRejected, "no such mailbox"))
	mailed, told := m.tellApart(t)
	if classOf(mailed) != failure.RecipientRejected || told != nil || len(chat.got) != 1 {
		t.Errorf("mails ended with %v, the chat with %v and %d posts", mailed, told, len(chat.got))
	}
	m.wantCopies(t, 0, 1)
}

// A channel that is down fails no reconciliation: that would look like the mail
// server, and keep the mails behind it from being looked at.
func TestChannelThatIsDownDoesNotStopReconciliation(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.tellsChat(false)
	chat.fail = failure.Errorf(failure.NetworkUnreachable, "refused")
	if _, told := m.tellApart(t); told == nil {
		t.Fatal("the chat was told")
	}
	m.finish(t)
	if done := m.reconcile(t); done.Confirmed != 2 || done.Open != 1 {
		t.Errorf("reconciled %+v, want both mails looked at", done)
	}
	chat.fail = nil
	if done := m.reconcile(t); done.Sent != 1 || m.rowOf(review.ChannelWebhook).Status != review.DeliverySent {
		t.Errorf("reconciled %+v, want the chat told now", done)
	}
}
