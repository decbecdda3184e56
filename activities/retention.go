package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/review"
)

// Retention serves contract.QueueRetention: it deletes expired data and can do nothing else.
type Retention struct {
	Log    *slog.Logger
	Stored expirables
	// JobsTTL is how long the rows of a review are kept. 0: unlimited.
	JobsTTL time.Duration
}

// expirables is the data with a limited lifetime. Its methods are those of store.DB.
type expirables interface {
	DeleteExpiredArtifacts(ctx context.Context, ns review.Namespace) (int, error)
	DeleteOldRecipients(ctx context.Context) (int, error)
	ForgetMetadata(ctx context.Context) (addresses, paths int, err error)
	PurgeReviews(ctx context.Context, ttl time.Duration) (int, error)
	OverdueArtifacts(ctx context.Context, grace time.Duration) (int, error)
}

// RetentionResult counts what a run of [Retention.EnforceRetention] did.
type RetentionResult struct {
	Artifacts  int `json:"artifacts"`  // deleted
	Recipients int `json:"recipients"` // deleted
	Addresses  int `json:"addresses"`  // of deliveries, forgotten
	Paths      int `json:"paths"`      // of findings, forgotten
	Reviews    int `json:"reviews"`    // purged
	Overdue    int `json:"overdue"`    // expired and still stored
}

// overdueAfter is how long an expired artifact may be stored: two intervals of the hourly
// job, and the time that it takes.
const overdueAfter = 150 * time.Minute

// EnforceRetention deletes expired data, then counts what is left, even if a deletion
// failed. If any is left, it logs a security event (security 9.4.5).
func (r *Retention) EnforceRetention(ctx context.Context) (RetentionResult, error) {
	var result RetentionResult
	var failures []error
	for _, ns := range []review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceReport, review.NamespaceAnswer} {
		n, err := r.Stored.DeleteExpiredArtifacts(ctx, ns)
		result.Artifacts += n
		failures = append(failures, err)
	}
	var err error
	result.Recipients, err = r.Stored.DeleteOldRecipients(ctx)
	failures = append(failures, err)
	result.Addresses, result.Paths, err = r.Stored.ForgetMetadata(ctx)
	failures = append(failures, err)
	if r.JobsTTL > 0 {
		result.Reviews, err = r.Stored.PurgeReviews(ctx, r.JobsTTL)
		failures = append(failures, err)
	}
	result.Overdue, err = r.Stored.OverdueArtifacts(ctx, overdueAfter)
	if err != nil {
		failures = append(failures, fmt.Errorf("verify retention: %w", err))
	} else if result.Overdue > 0 {
		r.Log.ErrorContext(ctx, "security event", "event", "artifacts outlived their TTL", "artifacts", result.Overdue)
	}
	return result, errors.Join(failures...)
}
