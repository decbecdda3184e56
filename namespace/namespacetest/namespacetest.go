// Package namespacetest gives each test a namespace of its own on a real
// Temporal server.
package namespacetest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/namespace"
	"github.com/criticizer/criticizer/workflows"
)

// AddressVariable names the environment variable with the address of a Temporal
// server; `make test` starts one and sets it.
const AddressVariable = "CRITICIZER_TEST_TEMPORAL_ADDRESS"

// New returns a fresh namespace with our search attributes and says where it
// is. Without a server it skips the test, except in CI, where it fails it.
func New(t testing.TB) (namespace.Namespace, namespace.Config) {
	t.Helper()
	address := os.Getenv(AddressVariable)
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not set: run the tests with make test", AddressVariable)
		}
		t.Skipf("SKIPPED, no Temporal server: %s is not set; make test sets it", AddressVariable)
	}
	return NewAt(t, address)
}

// NewAt is New for the server at address.
func NewAt(t testing.TB, address string) (namespace.Namespace, namespace.Config) {
	t.Helper()
	cfg := namespace.Config{Address: address, Name: "test-" + rand.Text()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := namespace.Dial(ctx, log.NewStructuredLogger(slog.New(slog.DiscardHandler)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	_, err = n.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: cfg.Name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatalf("register namespace: %v", err)
	}
	waitFor(ctx, t, "search attributes", func() error { return n.RegisterAttributes(ctx) })
	waitFor(ctx, t, "visibility", func() error {
		_, err := n.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: cfg.Name, Query: workflows.AttributeChangelist.GetName() + " = 1",
		})
		return err
	})
	return n, cfg
}

// waitFor retries until the server's caches know the namespace.
func waitFor(ctx context.Context, t testing.TB, what string, try func() error) {
	t.Helper()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s of a new namespace: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
