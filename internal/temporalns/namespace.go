// Package temporalns is our namespace on a Temporal server: how to reach it, what it
// must know before reviews can run, and what the commands ask of it besides starting
// a review. [Dial] comes first; then each subject has a file: breakers, schedules,
// health, and how a run was reset or has ended.
package temporalns

import (
	"context"
	"crypto/tls"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// Config says where the namespace is.
type Config struct {
	// Address is host:port of the Temporal frontend. Required.
	Address string
	// Name of the namespace. Required.
	Name string
	// TLS encrypts the connection. An API key needs it.
	TLS bool
	// APIKey signs in. Unset for a server that wants none.
	APIKey secret.Value
	// Metrics takes what the SDK and activities count. Default: nothing does.
	Metrics client.MetricsHandler
	// Interceptors are those of traces. Default: none.
	Interceptors []interceptor.ClientInterceptor
	// OnClose, if set, is called when the connection is closed.
	OnClose func()
}

// A Namespace is a client that knows the name of its namespace.
type Namespace struct {
	client.Client
	name    string
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
	options := client.Options{
		HostPort: cfg.Address, Namespace: cfg.Name, Logger: lg,
		MetricsHandler: cfg.Metrics, Interceptors: cfg.Interceptors,
	}
	// What we send is references and counts: to compress it takes longer than to send it.
	options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	if cfg.TLS {
		options.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.APIKey.IsSet() {
		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return cfg.APIKey.Reveal(), nil })
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return Namespace{}, failure.Errorf(failure.NetworkUnreachable, "reach Temporal at %s (temporal.address): %w", cfg.Address, refusal{err})
	}
	return Namespace{c, cfg.Name, cfg.OnClose}, nil
}

// A refusal is an error of gRPC in the words of its innermost layer: who
// submits a change sees them.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func (r refusal) Error() string {
	said := r.error.Error()
	if i := strings.LastIndex(said, `desc = "`); i >= 0 {
		said = strings.TrimPrefix(strings.TrimSuffix(said[i+len(`desc = "`):], `"`), "transport: Error while dialing: ")
	}
	return said
}
