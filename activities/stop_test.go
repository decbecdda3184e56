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
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/namespace/namespacetest"
)

// A shop is a queue on the real server with one workflow of one activity, Work.
type shop struct {
	client.Client
	address, namespace string
	begun              chan struct{} // one for each attempt
	log                *bytes.Buffer // of attempts, for who reads it when no worker runs
}

const shopQueue = "shop"

func newShop(t *testing.T) shop {
	t.Helper()
	n, where := namespacetest.New(t)
	return shop{n.Client, where.Address, where.Name, make(chan struct{}, 10), &bytes.Buffer{}}
}

// hire starts a worker that is given a second to finish what it does.
func (s shop) hire(t *testing.T, work func(context.Context) error) worker.Worker {
	t.Helper()
	return s.hireOver(t, s.Client, work)
}

// hireOver starts a worker with a connection of its own.
func (s shop) hireOver(t *testing.T, connection client.Client, work func(context.Context) error) worker.Worker {
	t.Helper()
	const grace = time.Second
	w := worker.New(connection, shopQueue, worker.Options{
		Interceptors:      []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: plain, Grace: grace, Log: slog.New(slog.NewJSONHandler(s.log, nil))}},
		WorkerStopTimeout: 5 * grace,
	})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		s.begun <- struct{}{}
		return work(ctx)
	}, activity.RegisterOptions{Name: "Work"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			ActivityID: "work", StartToCloseTimeout: time.Minute, HeartbeatTimeout: 5 * time.Second, WaitForCancellation: true,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 2},
		}), "Work").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "Order"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (s shop) order(t *testing.T) client.WorkflowRun {
	t.Helper()
	run, err := s.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: shopQueue}, "Order")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// lastFailure is the class of the last attempt, as Temporal knows it.
func (s shop) lastFailure(t *testing.T, run client.WorkflowRun) (class string) {
	t.Helper()
	described, err := s.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range described.GetPendingActivities() {
		class = a.GetLastFailure().GetApplicationFailureInfo().GetType()
	}
	return class
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Criticizer-processing 8.2: a worker that is told to stop in the middle of an
// attempt costs the attempt, not the review.
func TestStoppedWorkerLeavesTheRestToAnother(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.hire(t, untilDone)
	run := s.order(t)
	<-s.begun
	stopped := time.Now()
	first.Stop()
	if took := time.Since(stopped); took < time.Second || took > 10*time.Second {
		t.Errorf("stopped after %s, want the grace and little more", took)
	}
	if got := s.lastFailure(t, run); got != string(failure.WorkerStopped) {
		t.Errorf("the attempt ended as %q, want %s", got, failure.WorkerStopped)
	}
	if want := `"error_class":"WORKER_STOPPED"`; !strings.Contains(s.log.String(), want) {
		t.Errorf("logged %s, want %s", s.log, want)
	}
	second := s.hire(t, func(context.Context) error { return nil })
	defer second.Stop()
	if err := run.Get(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestStoppedWorkerFinishesWhatIsShort(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	w := s.hire(t, func(ctx context.Context) error {
		time.Sleep(500 * time.Millisecond)
		return ctx.Err()
	})
	run := s.order(t)
	<-s.begun
	w.Stop()
	second := s.hire(t, func(context.Context) error { return errors.New("was not needed") })
	defer second.Stop()
	if err := run.Get(t.Context(), nil); err != nil || len(s.begun) != 0 {
		t.Errorf("ended with %v and %d further attempts", err, len(s.begun))
	}
}

func TestCancellationStaysOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	w := s.hire(t, untilDone)
	defer w.Stop()
	run := s.order(t)
	<-s.begun
	if err := s.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()); err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); !temporal.IsCanceledError(err) {
		t.Errorf("ended with %v, want a cancellation", err)
	}
}

// An attempt that had failed by itself keeps its class, even if it is told to
// stop at the same time.
func TestFailureBeforeTheStopKeepsItsClass(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	w := s.hire(t, func(ctx context.Context) error {
		<-ctx.Done()
		return failure.Errorf(failure.ContentPolicy, "refused")
	})
	run := s.order(t)
	<-s.begun
	w.Stop()
	second := s.hire(t, func(context.Context) error { return nil })
	defer second.Stop()
	var app *temporal.ApplicationError
	if err := run.Get(t.Context(), nil); !errors.As(err, &app) || app.Type() != string(failure.ContentPolicy) {
		t.Errorf("ended with %v", err)
	}
}

// Criticizer-processing 8.4: the first failure of a stage is known even if the
// worker of its last attempt died without a word.
func TestFirstFailureOutlivesTheLastWorker(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	connection, err := client.DialContext(t.Context(), client.Options{
		HostPort: s.address, Namespace: s.namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var failed time.Time
	died := make(chan struct{})
	first := s.hireOver(t, connection, func(ctx context.Context) error {
		if activity.GetInfo(ctx).Attempt == 1 {
			failed = time.Now()
			return failure.Errorf(failure.UpstreamUnavailable, "down")
		}
		time.Sleep(4 * time.Second) // the attempt's first heartbeat arrives, also on a busy machine
		connection.Close()
		close(died)
		return untilDone(ctx)
	})
	defer first.Stop()
	run := s.order(t)
	<-died
	second := s.hire(t, func(context.Context) error { return nil })
	defer second.Stop()
	err = run.Get(t.Context(), nil)
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok {
		t.Fatalf("ended with %v, want a timeout", err)
	}
	if got := activities.FirstFailureBefore(timeout); got.Sub(failed).Abs() > 4*time.Second { // the last attempt fails 5 s later at least
		t.Errorf("first failure at %s, want %s", got, failed)
	}
}
