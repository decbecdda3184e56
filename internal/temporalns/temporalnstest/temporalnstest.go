// Package temporalnstest gives each test its own namespace for reviews on a real Temporal
// server.
package temporalnstest

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/workflows"
)

// AddressVariable names the environment variable with the address of a Temporal server.
const AddressVariable = temporaltest.AddressVariable

// New is [temporaltest.New] for a namespace with our search attributes.
func New(tb testing.TB) (temporalns.Namespace, temporalns.Config) {
	tb.Helper()
	n, cfg := temporaltest.New(tb)
	return prepare(tb, temporalns.Namespace{Namespace: n}), cfg
}

// NewAt is New for another server. It sets the name of the namespace.
func NewAt(tb testing.TB, cfg temporalns.Config) (temporalns.Namespace, temporalns.Config) {
	tb.Helper()
	n, cfg := temporaltest.NewAt(tb, cfg)
	return prepare(tb, temporalns.Namespace{Namespace: n}), cfg
}

func prepare(tb testing.TB, n temporalns.Namespace) temporalns.Namespace {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	temporaltest.WaitFor(ctx, tb, "search attributes", func() error { return n.RegisterAttributes(ctx) })
	temporaltest.WaitFor(ctx, tb, "visibility", func() error {
		_, err := n.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: n.Name, Query: workflows.AttributeChangelist.GetName() + " = 1",
		})
		return err
	})
	return n
}
