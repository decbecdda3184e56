package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// cluster is the real server, a worker for every queue, and the fakes and the database
// behind them.
type cluster struct {
	client.Client
	namespace string
	fakes     *activitiestest.Fakes
	db        activitiestest.Database
}

func newCluster(t *testing.T, alter ...func(stages []any)) cluster {
	t.Helper()
	n, where := temporaltest.New(t, contract.Attributes()...)
	w := activitiestest.New()
	c := cluster{n.Client, where.Name, w, w.Open(t)}
	queues := []string{ // in the order of activitiesOver
		contract.QueueBookkeeping, contract.QueueFetch, contract.QueueRedact, contract.QueueLLM, contract.QueueNotify,
		contract.QueueOf(review.ChannelWebhook), contract.QueueOf(review.ChannelSwarm),
	}
	stages := activitiesOver(t, c.fakes, c.db)
	stages[0].(*activities.Bookkeeper).Resets = n
	for _, f := range alter {
		f(stages)
	}
	serveRecords := worker.New(c.Client, contract.QueueRecords, worker.Options{})
	serveRecords.RegisterActivity(stages[4])
	testkit.NoError(t, serveRecords.Start())
	t.Cleanup(serveRecords.Stop)
	for i, queue := range queues {
		a := stages[min(i, len(stages)-1)] // the last serves both channels
		if a == nil {
			continue // the test serves it
		}
		serving := worker.New(c.Client, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{
			&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: i == 0},
		}})
		serving.RegisterActivity(a)
		if i == 0 {
			serving.RegisterWorkflow(workflows.ReviewChangelist)
			serving.RegisterWorkflow(workflows.SettleShelf)
		}
		testkit.NoError(t, serving.Start())
		t.Cleanup(serving.Stop)
	}
	return c
}

func (c cluster) review(t *testing.T) error {
	t.Helper()
	return c.start(t, request).Get(t.Context(), nil)
}

// start starts a review.
func (c cluster) start(t *testing.T, req review.Request) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), contract.StartOptions(req), workflows.ReviewChangelist, req)
	testkit.NoError(t, err)
	return run
}

// reset does what the UI and the command line do for a reset to the last
// workflow task of the workflow's current run, and waits for the new run.
func (c cluster) reset(t *testing.T) (review.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // an attempt may take one, and be lost
	defer cancel()
	described, err := c.DescribeWorkflow(ctx, request.Key, "")
	testkit.NoError(t, err)
	run := described.WorkflowExecution.RunID
	_, err = c.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 c.namespace,
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: request.Key, RunId: run},
		Reason:                    "the model is back",
		WorkflowTaskFinishEventId: c.lastWorkflowTask(ctx, t, run),
	})
	testkit.NoError(t, err)
	var result review.Result
	return result, c.GetWorkflow(ctx, request.Key, "").Get(ctx, &result)
}

// events returns the history of the review's current run.
func (c cluster) events(t *testing.T) (events []*historypb.HistoryEvent) {
	t.Helper()
	history := c.GetWorkflowHistory(t.Context(), request.Key, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		testkit.NoError(t, err)
		events = append(events, event)
	}
	return events
}

// activities lists what the review's current run has scheduled.
func (c cluster) activities(t *testing.T) (names []string) {
	t.Helper()
	for _, event := range c.events(t) {
		if name := event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (c cluster) lastWorkflowTask(ctx context.Context, t *testing.T, runID string) (id int64) {
	t.Helper()
	events := c.GetWorkflowHistory(ctx, request.Key, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			id = event.GetEventId()
		}
	}
	return id
}

// A reset to the last workflow task replays the failed stage, not the finished ones, any
// number of times (processing 8.5).
func TestResetReplaysTheFailedStage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	denied := failure.Errorf(failure.AuthDenied, "model refused the key")
	c.fakes.Fail("Review", denied, denied)
	if err := c.review(t); classOf(err) != failure.AuthDenied {
		t.Fatalf("review ended with %v", err)
	}
	c.keep(t, "dead_lettered")
	if _, err := c.reset(t); classOf(err) != failure.AuthDenied {
		t.Fatalf("first replay ended with %v, want the second refusal", err)
	}
	c.keep(t, "dead_lettered_again")
	result, err := c.reset(t)
	testkit.NoError(t, err)
	c.keep(t, "replayed")
	if result.Job.State != review.JobSucceeded {
		t.Errorf("second replay = %+v", result)
	}
	got := []int{c.fakes.Calls("Fetch"), c.fakes.Calls("Get raw"), c.fakes.Calls("Review"), c.fakes.Copies("alice@corp.test")}
	if want := []int{1, 1, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("fetches, redactions, model calls, mails to the author = %v, want %v", got, want)
	}
	var replays int
	c.db.Scan(t, `select count(*) from criticizer.audit_log where action = 'replay'`, nil, &replays)
	if letters := c.db.Letters(t); letters != 2 || replays < 2 {
		t.Errorf("%d dead letters and %d replays, want one deadLetter per dead run and a trace of each replay", letters, replays)
	}
}

// A replay that fails with the same non-retryable class is escalated (processing 8.5).
func TestReplayThatFailsAgainIsEscalated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	denied := failure.Errorf(failure.AuthDenied, "model refused the key")
	c.fakes.Fail("Review", denied, denied)
	if err := c.review(t); classOf(err) != failure.AuthDenied || c.escalated(t) {
		t.Fatalf("review ended with %v, escalated %v, want it dead-lettered only", err, c.escalated(t))
	}
	if _, err := c.reset(t); classOf(err) != failure.AuthDenied || !c.escalated(t) {
		t.Fatalf("replay ended with %v, escalated %v, want it escalated", err, c.escalated(t))
	}
	c.keep(t, "escalated")
	if _, err := c.reset(t); err != nil || c.escalated(t) {
		t.Errorf("second replay ended with %v, escalated %v, want the mark gone with the failure", err, c.escalated(t))
	}
}

// escalated reads the search attribute of the workflow's current run.
func (c cluster) escalated(t *testing.T) bool {
	t.Helper()
	described, err := c.DescribeWorkflow(t.Context(), request.Key, "")
	testkit.NoError(t, err)
	shown, _ := described.TypedSearchAttributes.GetBool(contract.AttributeEscalated)
	return shown
}

// A replay of a review that has succeeded meanwhile makes no model call and sends no mail
// (processing 8.5.3).
func TestReplayOfASucceededReviewDoesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fakes.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	if err := c.review(t); classOf(err) != failure.AuthDenied {
		t.Fatalf("review ended with %v", err)
	}
	ref := c.db.Keep(t, review.Report{Changelist: request.Changelist, Version: request.Version, Outcome: review.OutcomeClean})
	if _, err := c.db.FinishJob(t.Context(), request.Key, ref); err != nil {
		t.Fatal(err)
	}
	result, err := c.reset(t)
	testkit.NoError(t, err)
	c.keep(t, "superseded")
	if !result.Duplicate || c.fakes.Calls("Review") != 1 || c.fakes.Calls("Send") != 0 {
		t.Errorf("replay = %+v after %d model calls and %d mails", result, c.fakes.Calls("Review"), c.fakes.Calls("Send"))
	}
}

func TestReviewOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fakes.Fail("Get raw", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
	testkit.NoError(t, c.review(t))
	c.keep(t, "reviewed")
	if scheduled := c.activities(t); slices.Contains(scheduled, "OpenJob") || slices.Contains(scheduled, "FinishJob") {
		t.Errorf("activities = %v, want the job opened and closed within workflow tasks", scheduled)
	}
	if c.fakes.Copies("alice@corp.test") != 1 || c.fakes.Copies("bob@corp.test") != 1 {
		t.Error("not every recipient has one mail")
	}
}

func TestOutageOfTheDatabaseOnTheRealServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	c.fakes.Fail("OpenJob", down, down)
	c.fakes.Fail("FinishJob", down, down)
	testkit.NoError(t, c.review(t))
	c.keep(t, "database_down")
	if got := c.activities(t); !slices.Contains(got, "OpenJob") || !slices.Contains(got, "FinishJob") {
		t.Errorf("activities = %v, want those that wait for the database among them", got)
	}
}
