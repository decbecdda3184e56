package main

import (
	"context"
	"log/slog"
)

// sdkLines takes the SDK's lines. It calls each attempt that failed an error; most
// are made again. What a person has to look at is the review that is dead-lettered.
type sdkLines struct{ slog.Handler }

func (h sdkLines) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "Activity error." {
		r.Level = min(r.Level, slog.LevelWarn)
	}
	return h.Handler.Handle(ctx, r)
}

func (h sdkLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkLines{h.Handler.WithAttrs(attrs)}
}

func (h sdkLines) WithGroup(name string) slog.Handler { return sdkLines{h.Handler.WithGroup(name)} }
