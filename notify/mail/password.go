package mail

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/failure"
)

// overlap remembers which of two passwords is in use while one is rotated out.
type overlap struct {
	lg    *slog.Logger
	inUse atomic.Value // string: the password that was accepted last
}

// connect dials, secures the connection and signs in; with the old password if
// the server does not accept the new one (security 9.3.5).
func (p *SMTPProvider) connect(ctx context.Context) (*session, error) {
	s, err := p.connectWith(ctx, p.cfg.Password)
	if !p.cfg.PasswordOld.IsSet() {
		return s, err
	}
	in := "new"
	if signInRefused(ctx, err) {
		in = "old"
		if s, err = p.connectWith(ctx, p.cfg.PasswordOld); signInRefused(ctx, err) {
			in = "none"
		}
	}
	if err == nil || in == "none" {
		p.overlap.note(ctx, in)
	}
	return s, err
}

// signInRefused reports whether err says that the server does not accept the sign-in.
func signInRefused(ctx context.Context, err error) bool {
	return err != nil && failure.ClassOf(classify(ctx, stepConnect, err)) == failure.AuthDenied
}

// note logs which password is in use whenever that changes, never the password.
func (o *overlap) note(ctx context.Context, name string) {
	if o.inUse.Swap(name) != name {
		o.lg.InfoContext(ctx, "mail password in use", "password", name)
	}
}
