package secret

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// A Followed is a secret that [Follow] updates from its file.
type Followed struct {
	// Name is the variable of the secret.
	Name string
	Value
	// Accept checks a new value. Its error contains the hint. Nil accepts all.
	Accept func(Value) error
}

// Follow updates secrets from their files until ctx ends, so that an emergency rotation
// (security 9.3.5) needs no restart. It checks the files at every interval and reads the
// changed ones; a value on now makes it read all of them. Secrets that did not come
// from a file do not change.
//
// If a file is invalid, the secret keeps its value and Follow logs an error. The log
// contains names of variables and files only.
func Follow(ctx context.Context, lg *slog.Logger, secrets []Followed, interval time.Duration, now <-chan os.Signal) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-now:
			lg.InfoContext(ctx, "reading all secrets again")
			Reload(ctx, lg, secrets)
		case <-tick.C:
			Reload(ctx, lg, slices.DeleteFunc(slices.Clone(secrets), Followed.unchanged))
		}
	}
}

// Reload reads the files of the secrets once, as [Follow] does.
func Reload(ctx context.Context, lg *slog.Logger, secrets []Followed) {
	for _, s := range secrets {
		changed, err := s.renew()
		switch {
		case err != nil:
			lg.ErrorContext(ctx, "secret not reloaded: the old one stays in use", "secret", s.Name, "error", err)
		case changed:
			lg.InfoContext(ctx, "secret reloaded", "secret", s.Name)
		}
	}
}

// unchanged reports whether the file has not changed since it was read.
func (s Followed) unchanged() bool {
	return s.c == nil || s.c.origin == nil || !s.c.origin.changed()
}

// renew replaces the secret by the content of its file.
func (s Followed) renew() (changed bool, err error) {
	if s.c == nil || s.c.origin == nil {
		return false, nil
	}
	fresh, err := s.c.origin.read()
	if err != nil || fresh.Reveal() == s.Reveal() {
		return false, err
	}
	if s.Accept != nil {
		if err := s.Accept(fresh); err != nil {
			return false, fmt.Errorf("%s names %s: %w", s.c.origin.variable, s.c.origin.path, err)
		}
	}
	s.c.text.Store(fresh.c.text.Load())
	return true, nil
}
