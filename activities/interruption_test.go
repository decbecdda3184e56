package activities_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A workQueue is a task queue on the real server. Its only workflow executes one
// activity, Work.
type workQueue struct {
	client.Client
	address, namespace string
	begun              chan struct{} // one for each attempt
	log                *bytes.Buffer // of attempts; read it only while no worker runs
}

const queueName = "work"

func newWorkQueue(t *testing.T) workQueue {
	t.Helper()
	n, where := temporaltest.New(t)
	return workQueue{n.Client, where.Address, where.Name, make(chan struct{}, 10), &bytes.Buffer{}}
}

// startWorker starts a worker that has a second to finish what it does.
func (q workQueue) startWorker(t *testing.T, work func(context.Context) error) worker.Worker {
	t.Helper()
	return q.startWorkerOver(t, q.Client, work)
}

// startWorkerOver is startWorker over another connection, which a test may close.
func (q workQueue) startWorkerOver(t *testing.T, connection client.Client, work func(context.Context) error) worker.Worker {
	t.Helper()
	const grace = time.Second
	w := worker.New(connection, queueName, worker.Options{
		Interceptors:      []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: plain, Grace: grace, Log: slog.New(slog.NewJSONHandler(q.log, nil))}},
		WorkerStopTimeout: 5 * grace,
	})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		q.begun <- struct{}{}
		return work(ctx)
	}, activity.RegisterOptions{Name: "Work"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			ActivityID: "work", StartToCloseTimeout: 5 * time.Minute, HeartbeatTimeout: 10 * time.Second, WaitForCancellation: true,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 2},
		}), "Work").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "OneActivity"})
	testkit.NoError(t, w.Start())
	return w
}

func (q workQueue) startWorkflow(t *testing.T) client.WorkflowRun {
	t.Helper()
	run, err := q.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queueName}, "OneActivity")
	testkit.NoError(t, err)
	return run
}

// lastFailure is the class of the last attempt, as Temporal knows it.
func (q workQueue) lastFailure(t *testing.T, run client.WorkflowRun) (class string) {
	t.Helper()
	described, err := q.DescribeWorkflow(t.Context(), run.GetID(), run.GetRunID())
	testkit.NoError(t, err)
	for _, a := range described.RawResponse.GetPendingActivities() {
		class = a.GetLastFailure().GetApplicationFailureInfo().GetType()
	}
	return class
}

// awaitHeartbeat waits until Temporal has a heartbeat with one failed attempt.
func (q workQueue) awaitHeartbeat(ctx context.Context, t *testing.T, workflowID string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		described, err := q.DescribeWorkflow(ctx, workflowID, "")
		if err != nil {
			t.Error(err)
			return
		}
		for _, a := range described.RawResponse.GetPendingActivities() {
			var beat struct{ Failures int }
			if err := converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &beat); err == nil && beat.Failures == 1 {
				return
			}
		}
	}
	t.Error("no heartbeat arrived")
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A worker that stops during an attempt costs the attempt, not the review
// (processing 8.2).
func TestStoppedWorkerCostsOneAttempt(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	first := q.startWorker(t, untilDone)
	run := q.startWorkflow(t)
	<-q.begun
	stopped := time.Now()
	first.Stop()
	if took := time.Since(stopped); took < time.Second {
		t.Errorf("stopped after %s, want the grace at least", took)
	}
	if got := q.lastFailure(t, run); got != string(failure.WorkerStopped) {
		t.Errorf("the attempt ended as %q, want %s", got, failure.WorkerStopped)
	}
	if want := `"error_class":"WORKER_STOPPED"`; !strings.Contains(q.log.String(), want) {
		t.Errorf("logged %s, want %s", q.log, want)
	}
	second := q.startWorker(t, func(context.Context) error { return nil })
	defer second.Stop()
	if err := run.Get(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestStoppedWorkerFinishesShortAttempts(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	w := q.startWorker(t, func(ctx context.Context) error {
		<-activity.GetWorkerStopChannel(ctx)
		return ctx.Err()
	})
	run := q.startWorkflow(t)
	<-q.begun
	w.Stop()
	second := q.startWorker(t, func(context.Context) error { return errors.New("was not needed") })
	defer second.Stop()
	if err := run.Get(t.Context(), nil); err != nil || len(q.begun) != 0 {
		t.Errorf("ended with %v and %d further attempts", err, len(q.begun))
	}
}

func TestCancellationIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	w := q.startWorker(t, untilDone)
	defer w.Stop()
	run := q.startWorkflow(t)
	<-q.begun
	testkit.NoError(t, q.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	if err := run.Get(t.Context(), nil); !temporal.IsCanceledError(err) {
		t.Errorf("ended with %v, want a cancellation", err)
	}
}

// An attempt that failed by itself keeps its class, even if its worker stops at the same
// time.
func TestFailureBeforeTheStopKeepsItsClass(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	w := q.startWorker(t, func(ctx context.Context) error {
		<-ctx.Done()
		return failure.Errorf(failure.ContentPolicy, "refused")
	})
	run := q.startWorkflow(t)
	<-q.begun
	w.Stop()
	second := q.startWorker(t, func(context.Context) error { return nil })
	defer second.Stop()
	var app *temporal.ApplicationError
	if err := run.Get(t.Context(), nil); !errors.As(err, &app) || app.Type() != string(failure.ContentPolicy) {
		t.Errorf("ended with %v", err)
	}
}

// The first failure of a stage is known even if the worker of the last attempt crashed
// (processing 8.4).
func TestFirstFailureOutlivesTheLastWorker(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	connection, err := client.DialContext(t.Context(), client.Options{
		HostPort: q.address, Namespace: q.namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	testkit.NoError(t, err)
	var failed time.Time
	died := make(chan struct{})
	first := q.startWorkerOver(t, connection, func(ctx context.Context) error {
		if activity.GetInfo(ctx).Attempt == 1 {
			failed = time.Now()
			return failure.Errorf(failure.UpstreamUnavailable, "down")
		}
		q.awaitHeartbeat(ctx, t, activity.GetInfo(ctx).WorkflowExecution.ID)
		connection.Close()
		close(died)
		return untilDone(ctx)
	})
	defer first.Stop()
	run := q.startWorkflow(t)
	<-died
	second := q.startWorker(t, func(context.Context) error { return nil })
	defer second.Stop()
	err = run.Get(t.Context(), nil)
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok {
		t.Fatalf("ended with %v, want a timeout", err)
	}
	if got := activities.ReportOfLost(timeout); got.Attempt != 2 || got.FirstAt.Sub(failed).Abs() > 8*time.Second { // the last attempt fails 10 s later at least
		t.Errorf("the heartbeats report %+v, want attempt 2 and a first failure at %s", got, failed)
	}
}
