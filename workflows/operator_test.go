package workflows_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// temporalCommand runs the command line of Temporal.
func (c cluster) temporalCommand(ctx context.Context, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", `"$TEMPORAL" `+line)
	cmd.Env = append(os.Environ(), "TEMPORAL="+os.Getenv("CRITICIZER_TEST_TEMPORAL_COMMAND"),
		"TEMPORAL_ADDRESS="+os.Getenv(temporaltest.AddressVariable), "TEMPORAL_NAMESPACE="+c.namespace)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// gatedArtifacts are read when the gate is open.
type gatedArtifacts struct {
	*activitiestest.Artifacts
	wait func()
}

func (g gatedArtifacts) Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error) {
	g.wait()
	return g.Artifacts.Get(ctx, of, ref)
}

// An operator gives an activity more attempts than the stage has. The next activity of the
// stage has one attempt then, where 0 would be unlimited paid calls, and -1 would fail the
// workflow task forever.
func TestAttemptsBeyondTheBudget(t *testing.T) {
	t.Parallel()
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	for name, failures := range map[string]int{"none left": failure.AttemptBudget, "less than none left": failure.AttemptBudget + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			begun, gate := make(chan struct{}), make(chan struct{})
			open := sync.OnceFunc(func() { close(gate) })
			t.Cleanup(open)
			c := newCluster(t, func(stages []any) {
				r := stages[2].(*activities.Redactor)
				r.Raw = gatedArtifacts{r.Raw.(*activitiestest.Artifacts), sync.OnceFunc(func() { close(begun); <-gate })}
			})
			for range failures {
				c.fakes.Fail("Get raw", down)
			}
			c.fakes.Fail("Review", down, down)
			run := c.start(t, request)
			<-begun
			out, err := c.temporalCommand(ctx, "activity update-options --workflow-id "+request.Key+" --activity-id redact --retry-maximum-attempts 9")
			if err != nil {
				t.Fatal(err, out)
			}
			open()
			deadLetter := deadLetterIn(t, run.Get(ctx, nil))
			if c.fakes.Calls("Get raw") != failures+1 || c.fakes.Calls("Review") != 1 || deadLetter.Attempts != failures+1 {
				t.Errorf("%d attempts to redact, %d model calls, dead letter %+v", c.fakes.Calls("Get raw"), c.fakes.Calls("Review"), deadLetter)
			}
		})
	}
}

// A cancellation waits for the mail that is being sent: it is recorded, and no later reset
// or start sends it again.
func TestCancellationWaitsForTheMail(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const cl = review.Changelist(4711)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	l.holds[at("mail", cl)] = hold
	run := l.start(t, requestOf(cl, 1))
	waitUntil(ctx, t, func() bool { return l.count("mail", cl) == 1 })
	testkit.NoError(t, l.CancelWorkflow(ctx, keyOf(cl, 1), ""))
	waitUntil(ctx, t, func() bool { return l.canceling(ctx, t, keyOf(cl, 1)) })
	if job, err := l.db.Job(ctx, keyOf(cl, 1)); err != nil || job.State != review.JobInProgress {
		t.Errorf("while a mail is being sent the job is %s, %v", job.State, err)
	}
	release()
	if err := run.Get(ctx, nil); !temporal.IsCanceledError(err) {
		t.Errorf("the review ended with %v", err)
	}
	job, err := l.db.Job(ctx, keyOf(cl, 1))
	var sent, begun int
	l.db.Scan(t, `select count(*) filter (where status = 'sent'), count(*) filter (where begun)
		from criticizer.deliveries where channel = 'mail'`, nil, &sent, &begun)
	if err != nil || job.State != review.JobCanceled || sent == 0 || begun != 0 || sent != l.count("mail", cl) {
		t.Errorf("the job is %s, %v; of %d mails %d are in doubt and %d are recorded", job.State, err, l.count("mail", cl), begun, sent)
	}
}

// canceling reports whether the review has asked its activity to stop.
func (l *lab) canceling(ctx context.Context, t *testing.T, key string) bool {
	t.Helper()
	events := l.GetWorkflowHistory(ctx, key, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED {
			return true
		}
	}
	return false
}
