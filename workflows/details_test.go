package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// The Temporal UI shows where a review stands while it waits, and after its end why it is dead.
func TestDetailsOnTheRealServer(t *testing.T) {
	t.Parallel()
	model := heldReviewer{release: make(chan struct{})}
	release := sync.OnceFunc(func() { close(model.release) })
	t.Cleanup(release)
	c := newCluster(t, func(stages []any) {
		stages[0].(*activities.Bookkeeper).ChangeLink = "https://swarm.test/changes/{changelist}"
		stages[3].(*activities.Model).Reviewer = &model
	})
	model.Fakes = c.fakes
	c.fakes.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	run, err := c.ExecuteWorkflow(t.Context(), contract.StartOptions(request), workflows.ReviewChangelist, request)
	testkit.NoError(t, err)
	const change = "Changelist [4711](https://swarm.test/changes/4711), review version 1: "
	testkit.Eventually(t, "review waits", func() bool { return strings.HasPrefix(c.details(t), change+"**stage llm**\n") })
	release()
	if err := run.Get(t.Context(), nil); classOf(err) != failure.AuthDenied {
		t.Fatalf("review ended with %v", err)
	}
	want := change + "**dead in stage llm: AUTH_DENIED, " + failure.AuthDenied.Describe().Hint + "**\n"
	if got := c.details(t); !strings.HasPrefix(got, want) || !strings.Contains(got, "criticizer why 4711") {
		t.Errorf("details are %q, want %q", got, want)
	}
}

// A heldReviewer answers after release is closed.
type heldReviewer struct {
	*activitiestest.Fakes
	release chan struct{}
}

func (r *heldReviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	<-r.release
	return r.Fakes.Review(ctx, c, o)
}

// details returns the current details of the review.
func (c cluster) details(t *testing.T) string {
	t.Helper()
	var shown sdkpb.WorkflowMetadata
	testkit.Eventually(t, "an answer to the query", func() bool {
		answer, err := c.QueryWorkflow(t.Context(), request.Key, "", "__temporal_workflow_metadata")
		return err == nil && answer.Get(&shown) == nil
	})
	return shown.GetCurrentDetails()
}
