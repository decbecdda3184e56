package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
)

// newBreakerEnvironment has a worker that serves circuit breakers only, and no
// database: breaker commands must work without one.
func newBreakerEnvironment(t *testing.T) *environment {
	t.Helper()
	n, where := temporalnstest.New(t)
	s := &environment{
		t: t, runs: runs{n, where.Name}, address: where.Address,
		database: &storetest.Database{URL: secret.New("postgres://nobody@127.0.0.1:1/nowhere")},
	}
	w := worker.New(n.Client, activities.QueueBookkeeping, worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: true},
	}})
	w.RegisterWorkflow(workflows.CircuitBreaker)
	w.RegisterActivity(&activities.Bookkeeping{Queues: n})
	testkit.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return s
}

// breaker returns the breaker of a stage as breaker list --json prints it.
func (s *environment) breaker(stage string) breakerView {
	s.t.Helper()
	var listed []breakerView
	testkit.NoError(s.t, json.Unmarshal([]byte(s.must("breaker", "list", "--json")), &listed))
	i := slices.IndexFunc(listed, func(b breakerView) bool { return b.Stage == stage })
	if i < 0 {
		s.t.Fatalf("stage %s is not listed: %+v", stage, listed)
	}
	return listed[i]
}

// isBreaker fails the test unless a stage's breaker is in the state, by whom and why.
func (s *environment) isBreaker(stage, state, by, why string) {
	s.t.Helper()
	b := s.breaker(stage)
	if b.State != state || !strings.HasPrefix(b.By, by) || !strings.HasPrefix(b.Reason, why) {
		s.t.Errorf("the breaker is %+v, want it %s by %s for %s", b, state, by, why)
	}
}

func TestBreakerByHand(t *testing.T) {
	t.Parallel()
	s := newBreakerEnvironment(t)
	contains(t, s.must("breaker", "list"), "STAGE", "fetch", "redact", "llm", "notify", "closed")
	s.refuses(s.criticizer("breaker", "close", "llm"), 1, "is not open: it is closed")

	s.must("breaker", "open", "llm", "--reason", "INC-7: R&D's provider is down")
	s.isBreaker("llm", "open", "olga@", "INC-7: R&D's provider is down, until it is closed")
	s.isBreaker("notify", "closed", "", "")
	s.must("breaker", "open", "llm", "--for", "2h", "--reason", "INC-7: they say two hours")
	s.isBreaker("llm", "open", "olga@", "INC-7: they say two hours, until 20")
	s.must("breaker", "close", "llm")
	s.eventually("llm", "closed")
}

// A task queue may be stopped without a running breaker: its workflow was terminated
// in the UI, or an operator used the temporal command.
func TestCloseWithoutARunningBreaker(t *testing.T) {
	t.Parallel()
	s := newBreakerEnvironment(t)
	s.must("breaker", "open", "llm", "--reason", "INC-7")
	testkit.NoError(t, s.runs.TerminateWorkflow(t.Context(), workflows.BreakerID(activities.QueueLLM), "", "tested"))
	s.isBreaker("llm", "open", "olga@", "INC-7")
	s.must("breaker", "close", "llm")
	s.eventually("llm", "closed")

	rate := float32(0)
	testkit.NoError(t, s.runs.LimitQueue(t.Context(), activities.QueueNotify, activities.QueueLimit{PerSecond: &rate, By: "bob", Reason: "by hand"}))
	s.isBreaker("notify", "open", "bob", "by hand")
	s.must("breaker", "close", "notify")
}

// A rate limit that was set before the breaker opened is restored.
func TestBreakerRestoresALimit(t *testing.T) {
	t.Parallel()
	s := newBreakerEnvironment(t)
	rate := float32(3)
	testkit.NoError(t, s.runs.LimitQueue(t.Context(), activities.QueueLLM, activities.QueueLimit{PerSecond: &rate, By: "bob", Reason: "contract"}))
	s.isBreaker("llm", "at most 3/s", "bob", "contract")
	s.must("breaker", "open", "llm", "--for", "1s", "--reason", "INC-7")
	s.eventually("llm", "at most 3/s")
}

func TestBreakerRejects(t *testing.T) {
	t.Parallel()
	s := newBreakerEnvironment(t)
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"no action", nil, 2, "criticizer breaker"},
		{"an action there is not", []string{"pull"}, 2, "criticizer breaker"},
		{"no stage", []string{"open", "--reason", "r"}, 2, "wants STAGE"},
		{"a stage there is not", []string{"open", "workflows", "--reason", "r"}, 2, `stage "workflows" has no circuit breaker`},
		{"no reason", []string{"open", "llm"}, 1, "--reason is empty"},
		{"a time that has passed", []string{"open", "llm", "--for", "-1h", "--reason", "r"}, 2, `--for "-1h"`},
		{"a list of something", []string{"list", "llm"}, 2, "takes no arguments"},
	} {
		s.refuses(s.criticizer(append([]string{"breaker"}, tc.args...)...), tc.status, tc.says)
	}
	s.isBreaker("llm", "closed", "", "")
}

// eventually waits until a stage is listed in the state.
func (s *environment) eventually(stage, state string) {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for s.breaker(stage).State != state {
		if time.Now().After(deadline) {
			s.t.Fatalf("stage %s is not %s: %+v", stage, state, s.breaker(stage))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
