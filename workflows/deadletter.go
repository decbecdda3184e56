package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// deadLetter makes the dead letter of a stage from the error of its last attempt.
func (r *reviewState) deadLetter(ctx workflow.Context, stage review.Stage, err error) failure.DeadLetter {
	report := reportOf(ctx, err)
	deadLetter := failure.DeadLetter{
		ErrorClass:     report.Class,
		Stage:          string(stage),
		LastStack:      report.Stack,
		FirstFailureAt: cmp.Or(r.spent.FirstFailureAt, report.FirstAt),
		LastFailureAt:  report.At,
		Attempts:       max(1, r.spent.Failures),
		Hint:           report.Class.Describe().Hint,
	}
	deadLetter.SanitizedContext = map[string]string{
		"changelist":     r.req.Changelist.String(),
		"review_version": strconv.Itoa(int(r.req.Version)),
		"stage":          deadLetter.Stage,
		"attempts":       strconv.Itoa(deadLetter.Attempts),
		"upstream":       report.Upstream,
		"request_id":     report.RequestID,
		"raw":            truncated(r.fetched.Raw),
		"redacted":       truncated(r.redacted),
		"report":         truncated(r.reviewed.Report),
	}
	if failed, ok := errors.AsType[*temporal.ActivityError](err); ok {
		deadLetter.SanitizedContext["activity"] = failed.ActivityID()
	}
	var failed []string
	for _, c := range review.Channels() {
		if attempts, ok := r.notNotified[c]; ok {
			failed = append(failed, string(c))
			deadLetter.SanitizedContext["attempts_"+string(c)] = strconv.Itoa(attempts)
		}
	}
	deadLetter.SanitizedContext["not_notified"] = strings.Join(failed, ", ")
	return deadLetter
}

// truncated returns the namespace and the first digits of a reference, which identify the
// stored artifact (processing 8.4). The reference is a keyed hash of the content.
func truncated(ref review.ArtifactRef) string {
	namespace, hash, ok := strings.Cut(string(ref), ":")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%.12s", namespace, hash)
}
