package main

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/temporal"
)

// An sdkHandler filters the log of the Temporal SDK. The SDK logs an error for
// every failed attempt of an activity. Most attempts are retried, and our
// interceptor has logged them with more detail.
type sdkHandler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h sdkHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "Activity error." {
		if loggedByInterceptor(r) {
			return nil
		}
		r.Level = min(r.Level, slog.LevelWarn)
	}
	return h.Handler.Handle(ctx, r)
}

// loggedByInterceptor reports whether the interceptor has logged the attempt. It
// makes every failure an ApplicationError, except those of the SDK itself, such
// as an input that cannot be decoded. It does not log probes, most of which fail.
func loggedByInterceptor(r slog.Record) bool {
	classified, probe := false, false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "Error":
			err, _ := a.Value.Any().(error)
			_, isApplication := errors.AsType[*temporal.ApplicationError](err)
			classified = isApplication || temporal.IsCanceledError(err)
		case "ActivityType":
			probe = a.Value.String() == "Probe"
		}
		return true
	})
	return classified && !probe
}

// WithAttrs implements [slog.Handler].
func (h sdkHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h sdkHandler) WithGroup(name string) slog.Handler {
	return sdkHandler{h.Handler.WithGroup(name)}
}
