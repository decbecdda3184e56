package main

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/temporal"
)

// sdkLines takes the SDK's lines. It writes one for each attempt that failed, and
// calls it an error; most are made again, and the interceptor of our activities has
// written a line that says more. What a person has to look at is the review that is
// dead-lettered.
type sdkLines struct{ slog.Handler }

func (h sdkLines) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "Activity error." {
		if saidBefore(r) {
			return nil
		}
		r.Level = min(r.Level, slog.LevelWarn)
	}
	return h.Handler.Handle(ctx, r)
}

// saidBefore reports whether the line is of an attempt that the interceptor has
// logged. It makes an ApplicationError of every failure, but is not told of what the
// SDK fails by itself, such as an input that it cannot read; and it does not log
// probes, most of which fail.
func saidBefore(r slog.Record) bool {
	verdict, probe := false, false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "Error":
			err, _ := a.Value.Any().(error)
			_, classed := errors.AsType[*temporal.ApplicationError](err)
			verdict = classed || temporal.IsCanceledError(err)
		case "ActivityType":
			probe = a.Value.String() == "Probe"
		}
		return true
	})
	return verdict && !probe
}

func (h sdkLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkLines{h.Handler.WithAttrs(attrs)}
}

func (h sdkLines) WithGroup(name string) slog.Handler { return sdkLines{h.Handler.WithGroup(name)} }
