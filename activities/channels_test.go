package activities_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/failure"
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
