package chaos

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/provider"
	"github.com/criticizer/criticizer/rewrite/store"
	workflows "github.com/criticizer/criticizer/rewrite/workflows"
	"github.com/criticizer/criticizer/store/artifact"
)

// Environment variables of a worker process. It has the parts of the real worker with
// shorter timeouts, so that all points run within minutes.
const (
	databaseVariable = "REWRITECHAOS_DATABASE"
	temporalVariable = "REWRITECHAOS_TEMPORAL" // address and namespace
	modelVariable    = "REWRITECHAOS_MODEL"
	keysetVariable   = "REWRITECHAOS_KEYSET"
	jobsVariable     = "REWRITECHAOS_JOBS"
)

// TestMain runs a worker if the environment is that of a worker process.
func TestMain(m *testing.M) {
	if os.Getenv(databaseVariable) == "" {
		os.Exit(m.Run())
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // the test process has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	lg := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	working, pipeline, err := newActivities(ctx, lg)
	if err != nil {
		return err
	}
	address, name, _ := strings.Cut(os.Getenv(temporalVariable), " ")
	n, err := temporal.Dial(ctx, log.NewStructuredLogger(slog.New(slog.DiscardHandler)), temporal.Config{Address: address, Name: name})
	if err != nil {
		return err
	}
	defer n.Close()
	verdicts := &activities.Interceptor{Scrub: scrub(pipeline)}
	w := worker.New(n.Client, activities.Queue, worker.Options{
		Interceptors:                     []interceptor.WorkerInterceptor{verdicts},
		MaxConcurrentActivityTaskPollers: 1, // many installations share one server
		MaxConcurrentWorkflowTaskPollers: 2,
	})
	workflows.Register(w)
	w.RegisterActivity(working)
	if err := w.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	w.Stop()
	return nil
}

// scrub redacts error messages.
func scrub(p *redaction.Pipeline) func(string) string {
	return func(s string) string {
		text, err := p.String(s)
		if err != nil {
			return "an error that could not be redacted"
		}
		return text.String()
	}
}

// run returns the limits of a run.
func run(jobs int) rewrite.RunConfig {
	return rewrite.RunConfig{
		MaxJobsPerRun: jobs, MaxRuntimeSeconds: 20, ClaimTimeoutSeconds: 26, RetryBackoffSeconds: []int{1},
	}
}

func newActivities(ctx context.Context, lg *slog.Logger) (*activities.Activities, *redaction.Pipeline, error) {
	db, err := store.Open(ctx, postgres.Config{URL: secret.New(os.Getenv(databaseVariable))}, store.RoleWorker)
	if err != nil {
		return nil, nil, err
	}
	keyset := secret.New(os.Getenv(keysetVariable))
	messages, err := artifact.New(store.Texts{Queue: db}, artifact.Config{Namespace: "message", Keyset: keyset, TTL: time.Hour})
	if err != nil {
		return nil, nil, err
	}
	results, err := artifact.New(store.Texts{Queue: db}, artifact.Config{Namespace: "result", Keyset: keyset, TTL: time.Hour})
	if err != nil {
		return nil, nil, err
	}
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key of this test, long enough"), Emails: true})
	if err != nil {
		return nil, nil, err
	}
	provider, err := provider.New(lg, pipeline, provider.Config{
		Timeout: 20 * time.Second, MaxAnswerTokens: 4_000, Providers: map[string]provider.Provider{"openai": {BaseURL: os.Getenv(modelVariable) + "/v1"}},
	})
	if err != nil {
		return nil, nil, err
	}
	var jobs int
	if _, err := fmt.Sscan(os.Getenv(jobsVariable), &jobs); err != nil {
		return nil, nil, err
	}
	a := activities.New(lg, activities.Parts{
		Queue: db, Messages: messages, Results: results, Pipeline: pipeline, Provider: provider, Standard: decision(rewrite.Batch),
		Name: fmt.Sprintf("worker %d", os.Getpid()),
	}, activities.Config{
		Run: run(jobs), Limits: rewrite.BatchLimits{Requests: 50_000, Tokens: 2_000_000}, Concurrency: 4,
		CallTimeout: 3 * time.Second, // a lease has 15 seconds
	})
	return a, pipeline, nil
}

func decision(mode rewrite.ExecutionMode) rewrite.RoutingDecision {
	return rewrite.RoutingDecision{
		Provider: "openai", AdapterKind: rewrite.OpenAIResponses, Model: "llmsim-1", PromptVersion: "v1", PolicyVersion: "p1", Mode: mode,
	}
}
