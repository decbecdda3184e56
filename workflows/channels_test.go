package workflows_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A chat is a channel that is down for the first so many posts.
type chat struct{ down, posts, told int }

func (c *chat) Send(context.Context, review.Report, review.DeliveryKey, time.Time) (string, error) {
	if c.posts++; c.posts <= c.down {
		return "", failure.Errorf(failure.NetworkUnreachable, "connection refused")
	}
	c.told++
	return "chat-1", nil
}

func (c *chat) Lookup(context.Context, review.DeliveryKey, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceUnknown}, nil
}

// toldBy has the stage notify tell c, as the webhook.
func (c *chat) toldBy(stages []any) {
	for _, stage := range stages {
		if n, ok := stage.(*activities.Notifying); ok {
			n.Channels = []activities.Channel{{Name: review.ChannelWebhook, Post: c}}
		}
	}
}

func benchWith(t *testing.T, c *chat) bench {
	t.Helper()
	b := newBench(t)
	stages := activitiesOver(t, b.world)
	c.toldBy(stages)
	for _, stage := range stages {
		b.RegisterActivity(stage)
	}
	return b
}

// Criticizer-processing 8.3: a channel has the attempts that a recipient has, and
// however many it takes, the people are mailed once and at the first.
func TestChannelIsRetriedWithoutTheMails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		down   int
		letter failure.Class
		told   int
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
			if classOf(err) != tt.letter || c.told != tt.told {
				t.Errorf("ended with %v, the chat was told %d times after %d posts", err, c.told, c.posts)
			}
			if a, o, n := b.world.Copies("alice@corp.test"), b.world.Copies("bob@corp.test"), b.world.Calls("Recipients"); a != 1 || o != 1 || n != 2+min(4, tt.down) {
				t.Errorf("alice has %d mails and bob %d, after %d readings of the recipients", a, o, n)
			}
			letter, dead := b.world.Letter("default-test-run-id")
			if dead != (tt.letter != "") || dead && (letter.Stage != "notify" || letter.SanitizedContext["not_notified"] != "webhook" ||
				letter.Attempts != failure.AttemptBudget || !strings.Contains(letter.LastStack, "notify webhook of changelist 4711")) {
				t.Errorf("letter = %+v", letter)
			}
		})
	}
}

// The other way round a channel is told though the mails cannot be sent, and the
// dead letter is about the mails.
func TestChannelIsToldThoughTheMailsFail(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"the mail server is down": failure.Errorf(failure.UpstreamUnavailable, "greylisted"),
		"a recipient is refused":  failure.Errorf(failure.RecipientRejected, "no such mailbox"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &chat{}
			b := benchWith(t, c)
			for range 2 * failure.AttemptBudget {
				b.world.Fail("Send", fault)
			}
			_, err := b.review(t)
			letter, dead := b.world.Letter("default-test-run-id")
			if classOf(err) != failure.ClassOf(fault) || !dead || letter.SanitizedContext["not_notified"] != "" || c.told != 1 {
				t.Errorf("ended with %v, the chat was told %d times; letter %+v", err, c.told, letter)
			}
		})
	}
}

// A replay of a review whose channel could not be told mails nobody again.
func TestResetTellsTheChannelThatWasDown(t *testing.T) {
	t.Parallel()
	c := &chat{down: failure.AttemptBudget}
	on := newCluster(t, c.toldBy)
	if err := on.review(t); classOf(err) != failure.NetworkUnreachable {
		t.Fatalf("review ended with %v", err)
	}
	on.keep(t, "channel_dead")
	result, err := on.reset(t)
	if err != nil || result.Job.State != review.JobSucceeded || c.told != 1 || on.world.Copies("alice@corp.test") != 1 || on.world.Calls("Review") != 1 {
		t.Errorf("replay ended as %+v with %v, the chat was told %d times", result, err, c.told)
	}
	on.keep(t, "channel_told")
}
