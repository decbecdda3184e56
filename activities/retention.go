package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/review"
)

// QueueRetention is the task queue of the deletion job. It is wire format.
const QueueRetention = "criticizer-retention"

// Retaining serves [QueueRetention]: it deletes what is past its time and can do
// nothing else.
type Retaining struct {
	Log    *slog.Logger
	Stored expirables
}

// expirables are what is stored for a limited time.
type expirables interface {
	DeleteExpiredArtifacts(ctx context.Context, ns review.Namespace) (int, error)
	ForgetRecipients(ctx context.Context) (int, error)
	// OverdueArtifacts counts what should have been gone for longer than grace.
	OverdueArtifacts(ctx context.Context, grace time.Duration) (int, error)
}

// RetentionResult says what a run of the deletion job did.
type RetentionResult struct {
	Artifacts  int `json:"artifacts"`  // deleted
	Recipients int `json:"recipients"` // forgotten
	Overdue    int `json:"overdue"`    // still there although past their time
}

// overdueAfter is how long an artifact may outlive its time: two runs of the
// hourly job and what they take.
const overdueAfter = 150 * time.Minute

// EnforceRetention deletes what is past its time, then verifies that nothing was
// left: by a count of its own, also when the deletion has failed. What is found
// is an alert in the log (security 9.4.5).
func (r *Retaining) EnforceRetention(ctx context.Context) (RetentionResult, error) {
	result, deleting := r.deleteExpired(ctx)
	var err error
	result.Overdue, err = r.Stored.OverdueArtifacts(ctx, overdueAfter)
	if err != nil {
		return result, errors.Join(deleting, fmt.Errorf("verify retention: %w", err))
	}
	if result.Overdue > 0 {
		r.Log.ErrorContext(ctx, "security event", "event", "artifacts outlived their TTL", "artifacts", result.Overdue)
	}
	return result, deleting
}

// deleteExpired goes on after a failure: one namespace must not keep the others.
func (r *Retaining) deleteExpired(ctx context.Context) (RetentionResult, error) {
	var result RetentionResult
	var failures []error
	for _, ns := range []review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceReport, review.NamespaceAnswer, review.NamespaceRewrite} {
		n, err := r.Stored.DeleteExpiredArtifacts(ctx, ns)
		result.Artifacts += n
		failures = append(failures, err)
	}
	n, err := r.Stored.ForgetRecipients(ctx)
	result.Recipients = n
	return result, errors.Join(append(failures, err)...)
}
