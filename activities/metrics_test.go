package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// measurements are counters, and how often each timer was used, by name and tags.
type measurements struct {
	mu     sync.Mutex
	values map[string]int64
}

// A measuring handler adds to measurements.
type measuring struct {
	*measurements
	tags string
}

func (m measuring) WithTags(tags map[string]string) client.MetricsHandler {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		m.tags += fmt.Sprintf(" %s=%s", key, tags[key])
	}
	return m
}

func (m measuring) add(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(name, "criticizer_") {
		m.values[name+m.tags] += n
	}
}

func (m measuring) Counter(name string) client.MetricsCounter { return counter{m, name} }
func (m measuring) Timer(name string) client.MetricsTimer     { return timer{m, name} }
func (m measuring) Gauge(string) client.MetricsGauge          { return gauge{} }

type counter struct {
	measuring
	name string
}

func (c counter) Inc(n int64) { c.add(c.name, n) }

type timer struct {
	measuring
	name string
}

func (t timer) Record(time.Duration) { t.add(t.name, 1) }

type gauge struct{}

func (gauge) Update(float64) {}

// measured returns what an activity adds to the metrics.
func measured(act func(ctx context.Context) error) map[string]int64 {
	m := measuring{measurements: &measurements{values: map[string]int64{}}}
	var suite testsuite.WorkflowTestSuite
	suite.SetMetricsHandler(m)
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&Interceptor{Scrub: func(s string) string { return s }}}})
	env.RegisterActivity(act)
	_, _ = env.ExecuteActivity(act)
	return m.values
}

// sum adds the values of the metrics of a name with tags that contain a text.
func sum(values map[string]int64, name, tags string) (n int64) {
	for key, value := range values {
		if strings.HasPrefix(key, name+" ") && strings.Contains(key+" ", tags+" ") {
			n += value
		}
	}
	return n
}

// Each attempt counts with its result, and a stage when it is done.
func TestAttemptsAreMeasured(t *testing.T) {
	t.Parallel()
	done := measured(func(context.Context) error { return nil })
	failed := measured(func(context.Context) error { return failure.Errorf(failure.AuthDenied, "refused") })
	if sum(done, metricAttempt, "result=ok") != 1 || sum(done, metricStage, "") != 1 {
		t.Errorf("a success is measured as %v", done)
	}
	if sum(failed, metricAttempt, "result=AUTH_DENIED") != 1 || sum(failed, metricStage, "") != 0 {
		t.Errorf("a failure is measured as %v", failed)
	}
}

// The prices differ for tokens that the provider had cached.
func TestTokensAreCountedByKind(t *testing.T) {
	t.Parallel()
	got := measured(func(ctx context.Context) error {
		countUsage(ctx, review.Usage{Calls: 2, Unproven: 1, PromptTokens: 100, CachedTokens: 30, CompletionTokens: 7})
		return nil
	})
	for kind, want := range map[string]int64{"prompt": 70, "cached": 30, "completion": 7} {
		if n := sum(got, metricTokens, "kind="+kind); n != want {
			t.Errorf("%d %s tokens, want %d", n, kind, want)
		}
	}
}
