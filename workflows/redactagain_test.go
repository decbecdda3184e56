package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
)

// An olderRedactor is a stage redact whose first calls have the rules of an older build.
type olderRedactor struct {
	*activities.Redacting
	older *redaction.Pipeline
	left  atomic.Int32
}

func newOlderRedactor(t *testing.T, stage any, calls int32) *olderRedactor {
	t.Helper()
	older, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, 16 bytes or more"), Emails: true})
	testkit.NoError(t, err)
	r := &olderRedactor{Redacting: stage.(*activities.Redacting), older: older}
	r.left.Store(calls)
	return r
}

// Redact replaces the method of stage redact.
func (r *olderRedactor) Redact(ctx context.Context, p activities.StageParams) (activities.RedactResult, error) {
	stage := *r.Redacting
	if r.left.Add(-1) >= 0 {
		stage.Pipeline = r.older
	}
	return stage.Redact(ctx, p)
}

// After an upgrade with other redaction rules, a review between Redact and Critique is
// redacted again, and so is the replay of a dead letter. Neither uses an attempt.
func TestUpgradeOfTheRedactionRules(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"redacted_again": false, "replayed_redacted_again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, func(stages []any) { stages[2] = newOlderRedactor(t, stages[2], 1) })
			if dead {
				c.world.Fail("Get redacted", failure.Errorf(failure.PermissionDenied, "no right to read"))
			}
			err := c.review(t)
			if dead {
				if classOf(err) != failure.PermissionDenied {
					t.Fatalf("review ended with %v", err)
				}
				_, err = c.reset(t)
			}
			testkit.NoError(t, err)
			c.keep(t, name)
			if n := c.world.Calls("Get raw"); n != 2 || c.world.Calls("Fetch") != 1 || c.world.Calls("Review") != 1 || c.world.Copies("alice@corp.test") != 1 {
				t.Errorf("%d redactions, %d fetches, %d model calls, %d mails: want 2 redactions, else 1",
					n, c.world.Calls("Fetch"), c.world.Calls("Review"), c.world.Copies("alice@corp.test"))
			}
		})
	}
}

// While workers are replaced one after the other, a review waits until the stages redact and
// llm have the same rules. It does not wait for ever.
func TestReviewWaitsForTheSameRedactionRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		older      int32
		redactions int
		letter     failure.Class
	}{
		"for ten minutes":            {10, 11, ""},
		"for more than half an hour": {1000, 31, failure.RedactionOutdated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.SetTestTimeout(4 * time.Minute)
			b.RegisterActivity(newOlderRedactor(t, activitiesOver(t, b.world, b.db)[2], tt.older))
			begun := b.Now()
			_, err := b.review(t)
			// A minute before each redaction after the second.
			if took, want := b.Now().Sub(begun), time.Duration(tt.redactions-2)*time.Minute; took < want || took > want+time.Minute {
				t.Errorf("the review took %s, want %s", took, want)
			}
			if got := classOf(err); got != tt.letter || b.world.Calls("Get raw") != tt.redactions {
				t.Errorf("ended with %v after %d redactions, want %q after %d", err, b.world.Calls("Get raw"), tt.letter, tt.redactions)
			}
			if calls, want := b.world.Calls("Review"), map[bool]int{true: 1, false: 0}[tt.letter == ""]; calls != want {
				t.Errorf("%d model calls, want %d", calls, want)
			}
		})
	}
}
