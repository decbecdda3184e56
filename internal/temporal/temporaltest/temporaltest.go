// Package temporaltest gives each test its own namespace on a real Temporal server.
package temporaltest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/internal/temporal"
)

// AddressVariable names the environment variable with the address of a Temporal server.
// make test starts a server and sets it.
const AddressVariable = "CRITICIZER_TEST_TEMPORAL_ADDRESS"

// New returns a new namespace with the search attributes, and its address and name.
// Without a server it skips the test; in CI it fails the test.
func New(tb testing.TB, attributes ...sdktemporal.SearchAttributeKey) (temporal.Namespace, temporal.Config) {
	tb.Helper()
	address := os.Getenv(AddressVariable)
	if address == "" {
		if os.Getenv("CI") != "" {
			tb.Fatalf("%s is not set: run the tests with make test", AddressVariable)
		}
		tb.Skipf("SKIPPED, no Temporal server: %s is not set; make test sets it", AddressVariable)
	}
	return NewAt(tb, temporal.Config{Address: address}, attributes...)
}

// NewAt is New for another server. It sets the name of the namespace.
func NewAt(tb testing.TB, cfg temporal.Config, attributes ...sdktemporal.SearchAttributeKey) (temporal.Namespace, temporal.Config) {
	tb.Helper()
	cfg.Name = "test-" + rand.Text()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	var n temporal.Namespace
	WaitFor(ctx, tb, "connection", func() (err error) { // a server accepts connections before it is healthy
		n, err = temporal.Dial(ctx, log.NewStructuredLogger(slog.New(slog.DiscardHandler)), cfg)
		return err
	})
	tb.Cleanup(n.Close)
	_, err := n.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: cfg.Name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		tb.Fatalf("register namespace: %v", err)
	}
	WaitFor(ctx, tb, "namespace", func() error {
		_, err := n.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: cfg.Name})
		return err
	})
	for _, key := range attributes {
		WaitFor(ctx, tb, "search attribute", func() error { return n.RegisterAttributes(ctx, key) })
		WaitFor(ctx, tb, "visibility", func() error {
			_, err := n.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: cfg.Name, Query: key.GetName() + " is null"})
			return err
		})
	}
	return n, cfg
}

// WaitFor retries until the server's caches know the namespace.
func WaitFor(ctx context.Context, tb testing.TB, what string, try func() error) {
	tb.Helper()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s of a new namespace: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
