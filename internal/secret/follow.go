package secret

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// A Followed secret is one that changes when the file it came from does.
type Followed struct {
	// Name is the variable of the secret.
	Name string
	Value
	// Accept refuses a new secret that cannot work. Its error says what to do.
	// Nil accepts all.
	Accept func(Value) error
}

// Follow keeps secrets what their files say until ctx ends, so that a rotation
// needs no restart (security 9.3.5). It looks at the files at every interval and
// reads those that were written; now has it read all of them at once. A secret
// that did not come from a file stays as it is.
//
// A file that would not have been accepted at the start changes nothing: the
// secret stays what it was, and an error in the log says why. The log never has
// more than the names of variables and files.
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
			Reload(ctx, lg, slices.DeleteFunc(slices.Clone(secrets), Followed.untouched))
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

// untouched reports whether there is nothing new to read.
func (s Followed) untouched() bool {
	return s.c == nil || s.c.origin == nil || !s.c.origin.touched()
}

// renew takes what the file holds, if it can work.
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
