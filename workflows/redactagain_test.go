package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
)

// An olderRedactor is a stage redact whose first calls have the rules of an older build.
type olderRedactor struct {
	*activities.Redactor
	older *redaction.Pipeline
	left  atomic.Int32
}

func newOlderRedactor(t *testing.T, stage any, calls int32) *olderRedactor {
	t.Helper()
	older, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, 16 bytes or more"), Emails: true})
	testkit.NoError(t, err)
	r := &olderRedactor{Redactor: stage.(*activities.Redactor), older: older}
	r.left.Store(calls)
	return r
}

// Redact replaces the method of stage redact.
func (r *olderRedactor) Redact(ctx context.Context, p activities.StageParams) (activities.RedactResult, error) {
	stage := *r.Redactor
	if r.left.Add(-1) >= 0 {
		stage.Pipeline = r.older
	}
	return stage.Redact(ctx, p)
}

// After an upgrade with other redaction rules, a review between Redact and LLM is
// redacted again, and so is the replay of a dead letter. Neither uses an attempt.
func TestUpgradeOfTheRedactionRules(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"redacted_again": false, "replayed_redacted_again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, func(stages []any) { stages[2] = newOlderRedactor(t, stages[2], 1) })
			if dead {
				c.fakes.Fail("Get redacted", failure.Errorf(failure.PermissionDenied, "no right to read"))
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
			if n := c.fakes.Calls("Get raw"); n != 2 || c.fakes.Calls("Fetch") != 1 || c.fakes.Calls("Review") != 1 || c.fakes.Copies("alice@corp.test") != 1 {
				t.Errorf("%d redactions, %d fetches, %d model calls, %d mails: want 2 redactions, else 1",
					n, c.fakes.Calls("Fetch"), c.fakes.Calls("Review"), c.fakes.Copies("alice@corp.test"))
			}
		})
	}
}

// Workers of redact and llm with different rules are a wrong installation.
func TestReviewIsRedactedAgainOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.RegisterActivity(newOlderRedactor(t, activitiesOver(t, b.fakes, b.db)[2], 2))
	_, err := b.review(t)
	if n := b.fakes.Calls("Get raw"); classOf(err) != failure.RedactionOutdated || n != 2 || b.fakes.Calls("Review") != 0 {
		t.Errorf("ended with %v after %d redactions and %d model calls, want %s after 2 and none", err, n, b.fakes.Calls("Review"), failure.RedactionOutdated)
	}
}
