// Package temporaltest gives tests a namespace of their own on a real Temporal
// server.
package temporaltest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/workflows"
)

// AddressEnv names the environment variable with the address of the server;
// make test sets it.
const AddressEnv = "CRITICIZER_TEST_TEMPORAL_ADDRESS"

// A Namespace is a client with the name of its namespace.
type Namespace struct {
	client.Client
	Name string
}

// New returns a client of a fresh namespace with our search attributes, so that
// tests running at once never serve each other's task queues. Without a server
// it skips the test, or fails it in CI.
func New(t *testing.T) Namespace {
	t.Helper()
	address := os.Getenv(AddressEnv)
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not set: run the tests with make test", AddressEnv)
		}
		t.Skipf("SKIPPED, no Temporal server: %s is not set; make test sets it", AddressEnv)
	}
	namespace := fmt.Sprintf("test-%d", time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatalf("reach Temporal at %s: %v", address, err)
	}
	t.Cleanup(c.Close)
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatalf("register namespace: %v", err)
	}
	waitFor(ctx, t, "search attributes", func() error { return workflows.RegisterAttributes(ctx, c, namespace) })
	waitFor(ctx, t, "visibility", func() error {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: namespace, Query: workflows.AttributeChangelist.GetName() + " = 1",
		})
		return err
	})
	return Namespace{c, namespace}
}

// waitFor retries until the server's caches know the namespace.
func waitFor(ctx context.Context, t *testing.T, what string, try func() error) {
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
