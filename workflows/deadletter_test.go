package workflows_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// lost makes the test environment treat these activities as the server does: it retries no
// attempt that was lost.
type lost struct {
	interceptor.WorkerInterceptorBase

	activities []string
	policies   []temporal.RetryPolicy // with which the activities were scheduled
}

// losing lets all attempts of an activity be lost, with the details of their last heartbeat.
func (b bench) losing(name string, result any, err error) *lost {
	l := &lost{activities: []string{name}}
	b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		l, &activities.Interceptor{Scrub: func(s string) string { return s }},
	}})
	b.OnActivity(name, mock.Anything, mock.Anything).Return(result, err)
	return l
}

func (l *lost) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &lostInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, l}
}

type lostInbound struct {
	interceptor.WorkflowInboundInterceptorBase

	lost *lost
}

func (i *lostInbound) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&lostOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}, i.lost})
}

type lostOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase

	lost *lost
}

func (o *lostOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if slices.Contains(o.lost.activities, name) {
		policy := *workflow.GetActivityOptions(ctx).RetryPolicy
		o.lost.policies = append(o.lost.policies, policy)
		policy.MaximumAttempts = 1
		ctx = workflow.WithRetryPolicy(ctx, policy)
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// A stage whose last worker crashed is dead-lettered as a timeout, with the time of the
// first failure (processing 8.4).
func TestDeadLetterOfALostAttempt(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBench(t)
	earlier := temporal.NewApplicationError("model endpoint answered 503", string(failure.UpstreamUnavailable))
	l := b.losing("LLM", activities.LLMResult{},
		temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, earlier, map[string]any{"failures": 2, "first_failure_at": first}))
	_, err := b.review(t)
	if classOf(err) != failure.AttemptTimeout {
		t.Fatalf("review ended with %v", err)
	}
	deadLetter := deadLetterIn(t, err)
	if !deadLetter.FirstFailureAt.Equal(first) || deadLetter.Attempts != 6 || len(l.policies) != 2 || // 3 of 5, then 3 of 2
		!strings.Contains(deadLetter.LastStack, "Heartbeat; an earlier attempt: model endpoint answered 503") {
		t.Errorf("deadLetter = %+v after %d activities", deadLetter, len(l.policies))
	}
}

// A lost attempt is one attempt of its stage. The workflow runs the activity again with the
// rest of them, under the retry policy of (processing 8.2).
func TestLostAttemptsUseTheBudget(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]any{"Fetch": activities.FetchResult{}, "Redact": activities.RedactResult{}, "LLM": activities.LLMResult{}} {
		for kind, lost := range map[string]error{
			"heartbeat": temporal.NewHeartbeatTimeoutError(), "start to close": temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
		} {
			b := newBench(t)
			l := b.losing(name, result, lost)
			_, err := b.review(t)
			if deadLetter := deadLetterIn(t, err); deadLetter.ErrorClass != failure.AttemptTimeout || deadLetter.Attempts != failure.AttemptBudget {
				t.Errorf("%s, %s: dead letter %+v", name, kind, deadLetter)
			}
			for i, got := range l.policies {
				want := temporal.RetryPolicy{
					InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: int32(5 - i),
					NonRetryableErrorTypes: []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"},
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: retry policy %d is %+v, want %+v", name, kind, i+1, got, want)
				}
			}
			if len(l.policies) != failure.AttemptBudget {
				t.Errorf("%s, %s: %d attempts", name, kind, len(l.policies))
			}
		}
	}
}

// The delays after lost attempts have full jitter, drawn for each attempt (processing 8.2).
func TestLostAttemptsAreRetriedWithJitter(t *testing.T) {
	t.Parallel()
	const runs, lostOnes = 100, 8
	below := 0
	for range runs {
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(log.NewStructuredLogger(discard))
		env := suite.NewTestWorkflowEnvironment()
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&lost{activities: []string{"EnforceRetention"}}}})
		env.RegisterActivity(&activities.Retention{})
		var begun []time.Time
		note := func(mock.Arguments) { begun = append(begun, env.Now()) }
		env.OnActivity("EnforceRetention", mock.Anything).Run(note).Return(activities.RetentionResult{}, temporal.NewHeartbeatTimeoutError()).Times(lostOnes)
		env.OnActivity("EnforceRetention", mock.Anything).Run(note).Return(activities.RetentionResult{}, nil)
		env.ExecuteWorkflow(workflows.EnforceRetention)
		if err := env.GetWorkflowError(); err != nil || len(begun) != lostOnes+1 {
			t.Fatalf("ended with %v after %d attempts", err, len(begun))
		}
		for i, at := range begun[1:] {
			limit := min(time.Second<<i, time.Minute)
			delay := at.Sub(begun[i])
			if delay <= 0 || delay > limit {
				t.Errorf("delay %s after attempt %d, want at most %s", delay, i+1, limit)
			}
			if delay < limit/2 {
				below++
			}
		}
	}
	if n := runs * lostOnes; below < n*2/5 || below > n*3/5 { // 5 standard deviations
		t.Errorf("%d of %d delays are in the lower half", below, n)
	}
}

// A crash of a worker on the real server: the server retries no lost attempt, the workflow
// does, after a timer, with the rest of the attempts.
func TestLostAttemptsOnTheRealServer(t *testing.T) {
	t.Parallel()
	var redact *activities.Redactor
	c := newCluster(t, func(stages []any) { redact, stages[2] = stages[2].(*activities.Redactor), nil })
	crashes := 2
	c.serve(t, contract.QueueRedact, func(worker.Registry) {}, acts{
		"Redact": func(ctx context.Context, p activities.StageParams) (activities.RedactResult, error) {
			if crashes--; crashes >= 0 {
				return activities.RedactResult{}, activity.ErrResultPending // no heartbeat follows
			}
			return redact.Redact(ctx, p)
		},
	})
	testkit.NoError(t, c.review(t))
	c.keep(t, "lost")
	var attempts []int32
	var delays []time.Duration
	for _, event := range c.events(t) {
		if a := event.GetActivityTaskScheduledEventAttributes(); a.GetActivityId() == "redact" || a.GetActivityId() == "llm" {
			p := a.GetRetryPolicy()
			attempts = append(attempts, p.GetMaximumAttempts())
			if p.GetInitialInterval().AsDuration() != time.Second || p.GetBackoffCoefficient() != 2 || p.GetMaximumInterval().AsDuration() != time.Minute {
				t.Errorf("retry policy of %s is %v", a.GetActivityId(), p)
			}
		}
		if timer := event.GetTimerStartedEventAttributes(); timer != nil {
			delays = append(delays, timer.GetStartToFireTimeout().AsDuration())
		}
	}
	if !slices.Equal(attempts, []int32{5, 4, 3, 3}) || len(delays) != 2 || delays[0] > time.Second || delays[1] > 2*time.Second {
		t.Errorf("attempts allowed: %v, want 5, 4 and 3 to redact and 3 for the model; delays %v", attempts, delays)
	}
}

// The activities of a stage share its attempts, the adoption of a report among them.
func TestBudgetOfAllActivitiesOfAStage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	b.fakes.Fail("Get report", down, down, failure.Errorf(failure.ArtifactExpired, "the report has expired"))
	b.fakes.Fail("Get raw", down)
	b.fakes.Fail("Review", down, down, down)
	_, err := b.review(t)
	if deadLetter := deadLetterIn(t, err); deadLetter.Attempts != 5 || deadLetter.SanitizedContext["activity"] != "llm" || b.fakes.Calls("Review") != 2 {
		t.Errorf("%d model calls, dead letter %+v; want the fifth failure of the stage to be the last", b.fakes.Calls("Review"), deadLetter)
	}
}

// Attempts that a lost activity ended before, and those that do not count, are those of its
// last heartbeat.
func TestBudgetOfALostActivity(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	b.fakes.Fail("Get report", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"), failure.Errorf(failure.ArtifactExpired, "the report has expired"))
	l := b.losing("LLM", activities.LLMResult{},
		temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil, map[string]int{"failures": 1, "stopped": 3}))
	_, err := b.review(t)
	if deadLetter := deadLetterIn(t, err); deadLetter.Attempts != failure.AttemptBudget || deadLetter.ErrorClass != failure.AttemptTimeout {
		t.Errorf("dead letter %+v, want %d attempts", deadLetter, failure.AttemptBudget)
	}
	if len(l.policies) != 2 || l.policies[0].MaximumAttempts != 4 || l.policies[1].MaximumAttempts != 2 {
		t.Errorf("retry policies %+v, want 4 attempts, then 2", l.policies)
	}
}

// Attempts that end because the worker stops do not count.
func TestStoppedAttemptsDoNotCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	stopped, down := failure.Errorf(failure.WorkerStopped, "worker is stopping"), failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	c.fakes.Fail("Get raw", stopped, stopped, down, stopped, stopped, down)
	c.fakes.Fail("Review", failure.Errorf(failure.AuthDenied, "model refused the key"))
	if deadLetter := deadLetterIn(t, c.review(t)); deadLetter.Attempts != 3 || deadLetter.ErrorClass != failure.AuthDenied || c.fakes.Calls("Get raw") != 7 {
		t.Errorf("%d attempts to redact, dead letter %+v; want two failures to redact and one of the model", c.fakes.Calls("Get raw"), deadLetter)
	}
	c.keep(t, "stopped")
}

// letterIn returns the dead letter in the failure of a review.
func deadLetterIn(t *testing.T, err error) (deadLetter failure.DeadLetter) {
	t.Helper()
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || app.Details(&deadLetter) != nil {
		t.Fatalf("review ended with %v, not with a dead letter", err)
	}
	return deadLetter
}

// acts are the fakes of activities, by name.
type acts map[string]any

// serve runs a worker of one task queue.
func (c cluster) serve(t *testing.T, taskQueue string, register func(worker.Registry), fakes acts) {
	t.Helper()
	w := worker.New(c.Client, taskQueue, worker.Options{})
	register(w)
	for name, fake := range fakes {
		w.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	testkit.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}
