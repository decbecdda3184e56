package temporal_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
)

var attributes = []sdktemporal.SearchAttributeKey{sdktemporal.NewSearchAttributeKeyInt64("CriticizerTestAttribute")}

func TestHealthOfANamespace(t *testing.T) {
	t.Parallel()
	n, _ := temporaltest.New(t, attributes...)
	if kept, err := n.Retention(t.Context()); err != nil || kept < time.Hour {
		t.Errorf("keeps histories for %s: %v", kept, err)
	}
	testkit.NoError(t, n.RegisterAttributes(t.Context(), attributes...))
	if missing, err := n.MissingAttributes(t.Context(), attributes...); err != nil || len(missing) > 0 {
		t.Errorf("lacks %v: %v", missing, err)
	}
	other := sdktemporal.NewSearchAttributeKeyKeyword("CriticizerTestAttribute")
	err := n.RegisterAttributes(t.Context(), other)
	if failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), "has type Int, want Keyword") || !strings.Contains(err.Error(), "--name CriticizerTestAttribute --type Keyword") {
		t.Errorf("an attribute of another type: %v", err)
	}
	if state, err := n.QueueState(t.Context(), "an-unserved-queue", false); err != nil || state.Served {
		t.Errorf("an unserved queue is served: %+v, %v", state, err)
	}
}

// On Temporal Cloud an administrator makes the search attributes. An account that may not
// add them works if they exist; else the error names them.
func TestAttributesMadeBeforehand(t *testing.T) {
	t.Parallel()
	_, where := temporaltest.New(t, attributes...)
	dial := func(namespace string, denied ...string) temporal.Namespace {
		t.Helper()
		cfg := temporal.Config{Address: where.Address, Name: namespace}
		cfg.Client.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if slices.Contains(denied, path.Base(method)) {
					return status.Error(codes.PermissionDenied, "Request unauthorized.")
				}
				return call(ctx, method, req, reply, c, opts...)
			})}
		n, err := temporal.Dial(t.Context(), log.NewStructuredLogger(slog.New(slog.DiscardHandler)), cfg)
		testkit.NoError(t, err)
		t.Cleanup(n.Close)
		return n
	}
	if err := dial(where.Name, "AddSearchAttributes").RegisterAttributes(t.Context(), attributes...); err != nil {
		t.Errorf("attributes that exist: %v", err)
	}
	if err := dial("default", "ListSearchAttributes").RegisterAttributes(t.Context(), attributes...); !temporal.IsDenied(err) {
		t.Errorf("attributes that cannot be listed: %v", err)
	}
	bare := "bare-" + rand.Text()
	n := dial(bare, "AddSearchAttributes")
	if _, err := n.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: bare, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := n.RegisterAttributes(ctx, attributes...)
	for tick := time.NewTicker(100 * time.Millisecond); failure.ClassOf(err) != failure.ConfigInvalid && ctx.Err() == nil; <-tick.C { // until the server knows the namespace
		err = n.RegisterAttributes(ctx, attributes...)
	}
	if failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("attributes that are missing: %v", err)
	}
}
