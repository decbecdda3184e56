// Package temporal connects to a namespace on a Temporal server, schedules workflows, and
// answers what the commands ask about the namespace, its task queues and its runs. The
// reviewer and the rewrite queue use it: it knows neither's workflows. [Dial] comes first.
package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Namespace is a client that knows the name of its namespace.
type Namespace struct {
	client.Client
	Name    string
	address string
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
	connection := &options.ConnectionOptions
	connection.DialOptions = append(slices.Clone(connection.DialOptions), grpc.WithChainUnaryInterceptor(cfg.explainNamespace))
	options.MetricsHandler, options.Interceptors = cfg.Metrics, cfg.Interceptors
	// Payloads are references and counts: compression would take longer than it saves.
	connection.GrpcCompression = &client.GrpcCompressionNone{}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return Namespace{}, failure.Errorf(failure.NetworkUnreachable, "reach Temporal at %s (temporal.address): %w", cfg.Address, connectError{err})
	}
	return Namespace{c, cfg.Name, cfg.Address, cfg.OnClose}, nil
}

// explainNamespace adds to the error about a missing namespace how to create it, which is the
// same for each call and each program.
func (c Config) explainNamespace(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, request, reply, conn, opts...)
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](serviceerror.FromStatus(status.Convert(err))); missing {
		refused := status.Convert(err).Proto()
		refused.Message = fmt.Sprintf("namespace %[2]s does not exist at %[1]s: correct temporal.namespace, or create it: "+
			"temporal operator namespace create --address %[1]s --namespace %[2]s --retention 720h", c.Address, c.Name)
		return status.FromProto(refused).Err()
	}
	return err
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
