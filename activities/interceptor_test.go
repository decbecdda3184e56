package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

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
)

// newEnv returns an environment whose attempts pass the interceptor.
func newEnv(i *activities.Interceptor) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{i}})
	return env
}

// failureOf runs an activity that does what act does and returns the error that is reported to Temporal.
func failureOf(t *testing.T, i *activities.Interceptor, act func(context.Context) error) *temporal.ApplicationError {
	t.Helper()
	env := newEnv(i)
	env.RegisterActivity(act)
	_, err := env.ExecuteActivity(act)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		t.Fatalf("activity ended with %v, not with an application error", err)
	}
	return app
}

func plain(s string) string { return s }

// (processing 8.1)
func TestEveryClassIsRetryableOrNot(t *testing.T) {
	t.Parallel()
	for _, d := range failure.Descriptions() {
		t.Run(string(d.Class), func(t *testing.T) {
			t.Parallel()
			app := failureOf(t, &activities.Interceptor{Scrub: plain}, func(context.Context) error {
				return fmt.Errorf("outer: %w", failure.Errorf(d.Class, "inner"))
			})
			if app.Type() != string(d.Class) || app.NonRetryable() == d.Retryable {
				t.Errorf("reported %s, non-retryable %t", app.Type(), app.NonRetryable())
			}
		})
	}
}

func TestRetryAll(t *testing.T) {
	t.Parallel()
	app := failureOf(t, &activities.Interceptor{Scrub: plain, RetryAll: true}, func(context.Context) error {
		return failure.Errorf(failure.ConfigInvalid, "relation does not exist")
	})
	if app.NonRetryable() {
		t.Error("a failure of bookkeeping was final")
	}
}

// The delay is full jitter, or what the endpoint asked for if that is longer, up to the
// ceiling (processing 8.2).
func TestDelayOfTheNextAttempt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		asked       time.Duration
		least, most time.Duration
	}{
		{"nothing asked", 0, time.Millisecond, time.Second},
		{"more asked", 90 * time.Second, 90 * time.Second, 90 * time.Second},
		{"too much asked", time.Hour, failure.DelayCeiling, failure.DelayCeiling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			app := failureOf(t, &activities.Interceptor{Scrub: plain}, func(context.Context) error {
				return &failure.Error{Class: failure.RateLimited, Err: errors.New("busy"), RetryAfter: tc.asked}
			})
			if d := app.NextRetryDelay(); d < tc.least || d > tc.most {
				t.Errorf("next attempt in %s, want %s to %s", d, tc.least, tc.most)
			}
		})
	}
}

// Each attempt has a delay of its own (processing 8.2.1): the delays of 9 attempts are 120 seconds
// on average, and would be 9 at most if all were the delay of the first one.
func TestDelayIsThatOfTheAttempt(t *testing.T) {
	t.Parallel()
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: plain}}})
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		if activity.GetInfo(ctx).Attempt <= 9 {
			return failure.Errorf(failure.ServerBusy, "busy")
		}
		return nil
	}, activity.RegisterOptions{Name: "act"})
	env.SetTestTimeout(time.Minute)
	begin := env.Now()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute}), "act").Get(ctx, nil)
	})
	if took := env.Now().Sub(begin); env.GetWorkflowError() != nil || took < 10*time.Second || took > 5*time.Minute {
		t.Errorf("ended after %s with %v", took, env.GetWorkflowError())
	}
}

// The delay is the one of the stage's attempt: of the attempts that the retry policy lacks,
// earlier activities of the stage have used the others. 20 delays after a fourth attempt
// are 80 seconds on average, and would be 20 at most if all were the delay of a first one.
func TestDelayIsThatOfTheAttemptOfTheStage(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	q.begun = make(chan struct{}, 20)
	w := q.startWorker(t, func(context.Context) error { return failure.Errorf(failure.AuthDenied, "no") })
	defer w.Stop()
	var all time.Duration
	for range cap(q.begun) {
		app, ok := errors.AsType[*temporal.ApplicationError](q.startWorkflow(t).Get(t.Context(), nil)) // allows 2 attempts
		if !ok {
			t.Fatal("the workflow did not fail")
		}
		all += app.NextRetryDelay()
	}
	if all < 21*time.Second || all > 160*time.Second {
		t.Errorf("the delays are %s", all)
	}
}

func TestPanicIsAnInvariantViolated(t *testing.T) {
	t.Parallel()
	app := failureOf(t, &activities.Interceptor{Scrub: plain}, func(context.Context) error { panic("nil map") })
	var report failure.Report
	testkit.NoError(t, app.Details(&report))
	if report.Class != failure.InvariantViolated || !strings.Contains(report.Stack, "interceptor_test.go") {
		t.Errorf("report = %+v, want the class of a bug and its stack", report)
	}
}

// An attempt is one of an activity that fails its attempts with these errors; nil is a crash
// of the process, of which no heartbeat remains.
func attempts(t *testing.T, ends ...error) (report failure.Report, began, ended []time.Time) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&crashes{ends: ends}, &activities.Interceptor{Scrub: plain}}})
	act := func(ctx context.Context) error {
		time.Sleep(time.Millisecond)
		began = append(began, time.Now())
		time.Sleep(time.Millisecond)
		ended = append(ended, time.Now())
		return ends[activity.GetInfo(ctx).Attempt-1]
	}
	env.RegisterActivityWithOptions(act, activity.RegisterOptions{Name: "act"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute}), "act").Get(ctx, nil)
	})
	app, ok := errors.AsType[*temporal.ApplicationError](env.GetWorkflowError())
	if !ok || app.Details(&report) != nil {
		t.Fatalf("ended with %v, want a report", env.GetWorkflowError())
	}
	return report, began, ended
}

// crashes fails attempts before the interceptor of this project sees them.
type crashes struct {
	interceptor.WorkerInterceptorBase

	ends []error
}

func (c *crashes) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &crash{interceptor.ActivityInboundInterceptorBase{Next: next}, c.ends}
}

type crash struct {
	interceptor.ActivityInboundInterceptorBase

	ends []error
}

func (c *crash) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if c.ends[activity.GetInfo(ctx).Attempt-1] == nil {
		return nil, errors.New("crashed")
	}
	return c.Next.ExecuteActivity(ctx, in)
}

// The report says how many attempts were made and when the first one failed. One that ended
// because its worker stopped is not a failure.
func TestReportCountsAttempts(t *testing.T) {
	t.Parallel()
	stopped, busy, final := failure.Errorf(failure.WorkerStopped, "stop"), failure.Errorf(failure.ServerBusy, "busy"), failure.Errorf(failure.ConfigInvalid, "no")
	report, _, ended := attempts(t, stopped, busy, stopped, final)
	if report.Attempt != 4 || report.Stopped != 2 || report.FirstAt.Before(ended[1]) || report.FirstAt.After(ended[2]) {
		t.Errorf("report is %+v, attempts ended at %v; want 4 attempts, 2 of them stopped, and the time of the second", report, ended)
	}
	report, began, _ := attempts(t, nil, busy, final)
	if report.Attempt != 3 || report.Stopped != 0 || report.FirstAt.IsZero() || report.FirstAt.After(began[0]) {
		t.Errorf("report is %+v, attempts began at %v; want 3 attempts, and the start of the one after the crash", report, began)
	}
}

// The report in the history is scrubbed, and small: 3 MB of details hang a workflow
// (processing 8.4.2).
func TestReportIsScrubbedAndBounded(t *testing.T) {
	t.Parallel()
	mask := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") }
	app := failureOf(t, &activities.Interceptor{Scrub: mask}, func(context.Context) error {
		return &failure.Error{
			Class: failure.UpstreamInternal, Upstream: "500 hunter2", RequestID: "hunter2",
			Err: errors.New("hunter2 " + strings.Repeat("x", 3<<20)),
		}
	})
	var report failure.Report
	testkit.NoError(t, app.Details(&report))
	body, err := json.Marshal(report)
	testkit.NoError(t, err)
	if all := string(body) + app.Message(); strings.Contains(all, "hunter2") || len(all) > 50<<10 {
		t.Errorf("%d bytes went into the history, beginning %.80q", len(all), all)
	}
}

func TestAttemptsAreLoggedWithTheSharedKeys(t *testing.T) {
	t.Parallel()
	shared := []string{"changelist", "review_version", "stage", "attempt", "workflow_id", "run_id", "duration_ms"}
	for name, tt := range map[string]struct {
		ends error
		want map[string]string
	}{
		"one that is done": {nil, map[string]string{"msg": "attempt done", "level": "INFO"}},
		"one that failed": {
			failure.Errorf(failure.AuthDenied, "ask the model: the key hunter2 is refused"),
			map[string]string{"msg": "attempt failed", "level": "WARN", "error_class": "AUTH_DENIED", "error": "ask the model: the key *** is refused"},
		},
	} {
		var out bytes.Buffer
		scrub := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		env := newEnv(&activities.Interceptor{Scrub: scrub, Log: slog.New(slog.NewJSONHandler(&out, nil))})
		act := func(context.Context, activities.StageParams) error { return tt.ends }
		env.RegisterActivity(act)
		if _, err := env.ExecuteActivity(act, activities.StageParams{Request: request}); (err != nil) != (tt.ends != nil) {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, &out)
		}
		for _, key := range shared {
			if _, ok := line[key]; !ok {
				t.Errorf("%s: line %s lacks %s", name, &out, key)
			}
		}
		for key, want := range tt.want {
			if line[key] != want {
				t.Errorf("%s: %s is %v, want %q", name, key, line[key], want)
			}
		}
	}
}
