package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A chat is a channel that is down for the first so many posts.
type chat struct{ down, posts, notified int }

func (c *chat) Send(context.Context, review.Report, review.DeliveryKey, time.Time) (string, error) {
	if c.posts++; c.posts <= c.down {
		return "", failure.Errorf(failure.NetworkUnreachable, "connection refused")
	}
	c.notified++
	return "chat-1", nil
}

func (c *chat) Lookup(context.Context, review.DeliveryKey, string, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceUnknown}, nil
}

// register makes c the webhook of stage notify.
func (c *chat) register(stages []any) {
	for _, stage := range stages {
		if n, ok := stage.(*activities.Notifier); ok {
			n.Channels = []activities.Channel{{Name: review.ChannelWebhook, Post: c}}
		}
	}
}

func benchWith(t *testing.T, c *chat) bench {
	t.Helper()
	b := newBench(t)
	stages := activitiesOver(t, b.fakes, b.db)
	c.register(stages)
	for _, stage := range stages {
		b.RegisterActivity(stage)
	}
	return b
}

// A channel has the attempts that a recipient has, and each recipient gets one mail
// (processing 8.3).
func TestChannelIsRetriedWithoutTheMails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		down       int
		deadLetter failure.Class
		notified   int
	}{
		"it is up":                   {0, "", 1},
		"four failures are survived": {4, "", 1},
		"the fifth is the last":      {5, failure.NetworkUnreachable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &chat{down: tt.down}
			b := benchWith(t, c)
			_, err := b.review(t)
			if classOf(err) != tt.deadLetter || c.notified != tt.notified {
				t.Errorf("ended with %v, the chat was notified %d times after %d posts", err, c.notified, c.posts)
			}
			if a, o, n := b.fakes.Copies("alice@corp.test"), b.fakes.Copies("bob@corp.test"), b.fakes.Calls("Recipients"); a != 1 || o != 1 || n != 2+min(4, tt.down) {
				t.Errorf("alice has %d mails and bob %d, after %d readings of the recipients", a, o, n)
			}
			if tt.deadLetter == "" {
				return
			}
			if deadLetter := deadLetterIn(t, err); deadLetter.Stage != "notify" || deadLetter.SanitizedContext["not_notified"] != "webhook" || deadLetter.Attempts != failure.AttemptBudget {
				t.Errorf("deadLetter = %+v", deadLetter)
			}
		})
	}
}

// A channel is notified if the mails fail. The dead letter is about the mails and counts the
// attempts of both.
func TestChannelIsNotifiedIfMailsFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault    error
		down     int
		attempts int
		context  string
	}{
		"the mail server is down": {failure.Errorf(failure.UpstreamUnavailable, "greylisted"), 0, 5, ""},
		"a recipient is refused":  {failure.Errorf(failure.RecipientRejected, "no such mailbox"), 0, 1, ""},
		"the channel fails, too":  {failure.Errorf(failure.UpstreamUnavailable, "greylisted"), 5, 10, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &chat{down: tt.down}
			b := benchWith(t, c)
			for range 2 * failure.AttemptBudget {
				b.fakes.Fail("Send", tt.fault)
			}
			_, err := b.review(t)
			deadLetter := deadLetterIn(t, err)
			if classOf(err) != failure.ClassOf(tt.fault) || c.posts != max(1, tt.down) ||
				deadLetter.Attempts != tt.attempts || deadLetter.SanitizedContext["attempts_webhook"] != tt.context {
				t.Errorf("ended with %v after %d posts; deadLetter %+v", err, c.posts, deadLetter)
			}
		})
	}
}

// A replay of a review whose channel failed sends no second mail.
func TestReplayNotifiesTheFailedChannel(t *testing.T) {
	t.Parallel()
	c := &chat{down: failure.AttemptBudget}
	on := newCluster(t, c.register)
	if err := on.review(t); classOf(err) != failure.NetworkUnreachable {
		t.Fatalf("review ended with %v", err)
	}
	on.keep(t, "channel_dead")
	result, err := on.reset(t)
	if err != nil || result.Job.State != review.JobSucceeded || c.notified != 1 || on.fakes.Copies("alice@corp.test") != 1 || on.fakes.Calls("Review") != 1 {
		t.Errorf("replay ended as %+v with %v, the chat was notified %d times", result, err, c.notified)
	}
	on.keep(t, "channel_notified")
}
