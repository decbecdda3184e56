package activities_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// expiring is a store with five artifacts to delete in each namespace.
type expiring struct {
	stuck   review.Namespace // what cannot be deleted
	overdue int
	deleted []review.Namespace
}

func (e *expiring) DeleteExpiredArtifacts(_ context.Context, ns review.Namespace) (int, error) {
	if ns == e.stuck {
		return 0, errors.New("cannot delete")
	}
	e.deleted = append(e.deleted, ns)
	return 5, nil
}

func (e *expiring) DeleteOldRecipients(context.Context) (int, error) { return 2, nil }

func (e *expiring) ForgetMetadata(context.Context) (addresses, paths int, err error) {
	return 3, 4, nil
}

func (e *expiring) PurgeReviews(_ context.Context, ttl time.Duration) (int, error) {
	return int(ttl.Hours()), nil
}

func (e *expiring) OverdueArtifacts(context.Context, time.Duration) (int, error) {
	return e.overdue, nil
}

// Expired data is deleted, and a security event is logged for what is left
// (security 9.4.5).
func TestEnforceRetention(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stored       expiring
		want         activities.RetentionResult
		fails, alert bool
	}{
		"all in order":                       {want: activities.RetentionResult{Artifacts: 25, Recipients: 2, Addresses: 3, Paths: 4, Reviews: 721}},
		"something was left":                 {stored: expiring{overdue: 3}, want: activities.RetentionResult{Artifacts: 25, Recipients: 2, Addresses: 3, Paths: 4, Reviews: 721, Overdue: 3}, alert: true},
		"one namespace stuck keeps no other": {stored: expiring{stuck: review.NamespaceRaw}, want: activities.RetentionResult{Artifacts: 20, Recipients: 2, Addresses: 3, Paths: 4, Reviews: 721}, fails: true},
		"verified although nothing works":    {stored: expiring{stuck: review.NamespaceRaw, overdue: 1}, want: activities.RetentionResult{Artifacts: 20, Recipients: 2, Addresses: 3, Paths: 4, Reviews: 721, Overdue: 1}, fails: true, alert: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			job := activities.Retaining{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), Stored: &tt.stored, JobsTTL: 721 * time.Hour}
			got, err := job.EnforceRetention(t.Context())
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("result = %+v, %v; want %+v", got, err, tt.want)
			}
			if alerted := log.Len() > 0; alerted != tt.alert {
				t.Errorf("alert = %t:\n%s", alerted, &log)
			}
		})
	}
}
