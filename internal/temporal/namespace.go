// Package temporal connects to a namespace on a Temporal server, schedules workflows, and
// answers what the commands ask about the namespace, its task queues and its runs. The
// reviewer and the rewrite queue use it: it knows neither's workflows. [Dial] comes first.
package temporal

import (
	"context"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Namespace is a client that knows the name of its namespace.
type Namespace struct {
	client.Client
	Name    string
	onClose func()
}

// Close ends the connection.
func (n Namespace) Close() {
	n.Client.Close()
	if n.onClose != nil {
		n.onClose()
	}
}

// Dial connects. The error names the address and has class NETWORK_UNREACHABLE.
func Dial(ctx context.Context, lg log.Logger, cfg Config) (Namespace, error) {
	options := cfg.Client
	options.HostPort, options.Namespace, options.Logger = cfg.Address, cfg.Name, lg
	options.MetricsHandler, options.Interceptors = cfg.Metrics, cfg.Interceptors
	// Payloads are references and counts: compression would take longer than it saves.
	options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return Namespace{}, failure.Errorf(failure.NetworkUnreachable, "reach Temporal at %s (temporal.address): %w", cfg.Address, connectError{err})
	}
	return Namespace{c, cfg.Name, cfg.OnClose}, nil
}

// A connectError shows the innermost layer of a gRPC error: the person who submits a
// change sees it.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

func (e connectError) Error() string {
	text := e.error.Error()
	if i := strings.LastIndex(text, `desc = "`); i >= 0 {
		text = strings.TrimPrefix(strings.TrimSuffix(text[i+len(`desc = "`):], `"`), "transport: Error while dialing: ")
	}
	return text
}
