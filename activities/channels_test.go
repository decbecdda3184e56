package activities_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A chat is a channel.
type chat struct {
	got      []review.DeliveryKey
	fail     error
	ids      []string // that were looked up, empty for a message without one
	evidence review.Evidence
}

func (c *chat) Send(_ context.Context, _ review.Report, key review.DeliveryKey, _ time.Time) (string, error) {
	c.got = append(c.got, key)
	return "chat-1", c.fail
}

func (c *chat) Lookup(_ context.Context, _ review.DeliveryKey, id string, _ time.Time) (review.Evidence, error) {
	c.ids = append(c.ids, id)
	return c.evidence, nil
}

// withChat adds a chat to the channels of the stage.
func (m mailing) withChat() *chat {
	c := &chat{}
	m.stage.Channels = []activities.Channel{{Name: review.ChannelWebhook, Post: c}}
	return c
}

func TestChannelsAreNotifiedOnce(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.withChat()
	first, mailed, posted := m.notifyAll()
	if mailed != nil || posted != nil || first.Sent != 2 {
		t.Fatalf("first %+v, %v, %v", first, mailed, posted)
	}
	again, mailed, posted := m.notifyAll()
	if mailed != nil || posted != nil || again.Sent != 0 || again.Already != 2 || len(again.Channels) != 0 {
		t.Errorf("again %+v, %v, %v", again, mailed, posted)
	}
	if len(chat.got) != 1 || chat.got[0].Channel() != review.ChannelWebhook || m.fakes.Copies("webhook") != 0 {
		t.Errorf("the chat got %+v, the mail server a message for it: %d", chat.got, m.fakes.Copies("webhook"))
	}
	m.wantCopies(t, 1, 1)
}

// A channel gets the reviews that its filter wants.
func TestChannelIsFiltered(t *testing.T) {
	t.Parallel()
	for _, wants := range []bool{false, true} {
		m := newMailing(t)
		chat := m.withChat()
		m.stage.Channels[0].Wants = func(r review.Report) bool { return wants && len(r.Findings) > 0 }
		if _, mailed, posted := m.notifyAll(); mailed != nil || posted != nil || (len(chat.got) == 1) != wants {
			t.Errorf("wanted: %t, got %+v, errors %v, %v", wants, chat.got, mailed, posted)
		}
	}
}

// Readers of a channel may not have access to the files of a restricted changelist.
func TestRestrictedChangesGoToNoChannel(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.withChat()
	m.input = m.db.Keep(t, review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomeFindings, Restricted: true, Findings: []review.Finding{{}}})
	if first, mailed, posted := m.notifyAll(); mailed != nil || posted != nil || len(chat.got) != 0 || len(first.Channels) != 0 || first.Sent == 0 {
		t.Errorf("%+v, the chat got %+v, errors %v, %v", first, chat.got, mailed, posted)
	}
}

func TestRowOfARemovedChannelIsNotMailed(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.withChat().fail = failure.Errorf(failure.RateLimited, "later")
	if _, _, posted := m.notifyAll(); posted == nil {
		t.Fatal("the chat was notified")
	}
	m.stage.Channels = nil
	_, _, err := m.notifyAll()
	if got := classOf(err); got != failure.ConfigInvalid || m.fakes.Copies("webhook") != 0 {
		t.Errorf("error %v, %d mails to a channel", err, m.fakes.Copies("webhook"))
	}
}

// notifyAll does what the workflow does: the mails, and then the channels; all of them if
// the mails fail.
func (m mailing) notifyAll() (result activities.NotifyResult, mailed, posted error) {
	result, mailed = m.notify()
	channels := result.Channels
	if mailed != nil {
		channels = review.Channels()
	}
	posting := &activities.Poster{Notifier: m.stage}
	m.env.RegisterActivity(posting)
	for _, c := range channels {
		p := activities.ChannelParams{StageParams: activities.StageParams{Request: request, Input: m.input}, Channel: c}
		_, err := m.env.ExecuteActivity(posting.NotifyChannel, p)
		posted = errors.Join(posted, err)
	}
	return result, mailed, posted
}

// Wherever an attempt ends, each recipient has one mail, and the channel is notified once,
// or its row is held if the channel cannot be looked up.
func TestChannelIsNotifiedOnceWhereverAnAttemptEnds(t *testing.T) {
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
		"before the begin":                  {"BeginDelivery", nil, review.Evidence{}, failure.DatabaseUnavailable, 1, review.DeliverySent},
		"it cannot be reached":              {"", failure.Errorf(failure.NetworkUnreachable, "refused"), review.Evidence{}, failure.NetworkUnreachable, 2, review.DeliverySent},
		"no answer, and it has it":          {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceAccepted, NotificationID: "chat-1"}, failure.DeliveryAmbiguous, 1, review.DeliverySent},
		"no answer, and it has it not":      {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceAbsent}, failure.DeliveryAmbiguous, 2, review.DeliverySent},
		"no answer, and it cannot be asked": {"", failure.Errorf(failure.DeliveryAmbiguous, "no answer"), review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 1, review.DeliveryHeld},
		"before the mark, and it has it":    {"MarkSent", nil, review.Evidence{State: review.EvidenceAccepted, NotificationID: "chat-1"}, failure.DatabaseUnavailable, 1, review.DeliverySent},
		"before the mark, without evidence": {"MarkSent", nil, review.Evidence{State: review.EvidenceUnknown}, failure.DatabaseUnavailable, 1, review.DeliveryHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			chat := m.withChat()
			chat.fail, chat.evidence = tt.chat, tt.evidence
			if tt.op != "" {
				m.fakes.Fail(tt.op, nil, nil, down) // after those of alice and bob
			}
			if _, mailed, posted := m.notifyAll(); mailed != nil || classOf(posted) != tt.first {
				t.Fatalf("mails ended with %v, the chat with %v, want %s", mailed, posted, tt.first)
			}
			chat.fail = nil
			_, mailed, posted := m.notifyAll()
			if mailed != nil || (posted != nil) != (tt.status == review.DeliveryHeld) {
				t.Errorf("again: mails ended with %v, the chat with %v", mailed, posted)
			}
			m.wantCopies(t, 1, 1)
			if got := m.row(t, string(review.ChannelWebhook)); len(chat.got) != tt.copies || got.Status != tt.status {
				t.Errorf("%d posts and a row that is %s, want %d and %s", len(chat.got), got.Status, tt.copies, tt.status)
			}
		})
	}
}

// A message with a stored ID is looked up by it (notification 6.4).
func TestStoredIDIsLookedUp(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.withChat()
	if _, mailed, posted := m.notifyAll(); mailed != nil || posted != nil {
		t.Fatal(mailed, posted)
	}
	m.finish(t)
	chat.evidence = review.Evidence{State: review.EvidenceAccepted}
	if done := m.reconcile(t); done.Confirmed != 3 || !slices.Equal(chat.ids, []string{"chat-1"}) {
		t.Errorf("reconciled %+v, looked up %q", done, chat.ids)
	}
}

// The failure of a channel does not fail a reconciliation: it would look like one of the
// mail server, and the mails after it would not be looked up.
func TestChannelThatIsDownDoesNotStopReconciliation(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	chat := m.withChat()
	chat.fail = failure.Errorf(failure.NetworkUnreachable, "refused")
	if _, _, posted := m.notifyAll(); posted == nil {
		t.Fatal("the chat was notified")
	}
	m.finish(t)
	if done := m.reconcile(t); done.Confirmed != 2 || done.Open != 1 {
		t.Errorf("reconciled %+v, want both mails looked up", done)
	}
	chat.fail = nil
	if done := m.reconcile(t); done.Sent != 1 || m.row(t, string(review.ChannelWebhook)).Status != review.DeliverySent {
		t.Errorf("reconciled %+v, want the chat notified now", done)
	}
}
