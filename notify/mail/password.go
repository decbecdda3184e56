package mail

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/failure"
)

// A passwordLog logs which of two passwords is in use during a rotation.
type passwordLog struct {
	lg    *slog.Logger
	inUse atomic.Value // string: new, old or none
}

// connect dials, secures the connection and signs in. If the server rejects the
// new password, it signs in with the old one (security 9.3.5).
func (p *SMTPProvider) connect(ctx context.Context) (*session, error) {
	s, err := p.connectWith(ctx, p.cfg.Password)
	if !p.cfg.PasswordOld.IsSet() {
		return s, err
	}
	inUse := "new"
	if signInRejected(ctx, err) {
		inUse = "old"
		if s, err = p.connectWith(ctx, p.cfg.PasswordOld); signInRejected(ctx, err) {
			inUse = "none"
		}
	}
	if err == nil || inUse == "none" {
		p.passwords.note(ctx, inUse)
	}
	return s, err
}

func signInRejected(ctx context.Context, err error) bool {
	return err != nil && failure.ClassOf(classify(ctx, stepConnect, err)) == failure.AuthDenied
}

// note logs which password is in use when that changes, never the password.
func (l *passwordLog) note(ctx context.Context, inUse string) {
	if l.inUse.Swap(inUse) != inUse {
		l.lg.InfoContext(ctx, "mail password in use", "password", inUse)
	}
}
