// Package temporalns prepares our namespace on a Temporal server for reviews, and answers
// what the commands ask about it. Each subject has a file: circuit breakers, schedules, the
// health of the server, and how a run was reset or has ended.
package temporalns

import (
	"context"

	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/temporal"
)

// A Namespace is our namespace.
type Namespace struct{ temporal.Namespace }

// Config describes the connection to the namespace.
type Config = temporal.Config

// Dial connects as [temporal.Dial] does.
func Dial(ctx context.Context, lg log.Logger, cfg Config) (Namespace, error) {
	n, err := temporal.Dial(ctx, lg, cfg)
	return Namespace{n}, err
}
