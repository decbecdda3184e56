package mail

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
)

// connect dials, secures the connection and signs in. If the server rejects the
// new password, it signs in with the old one (security 9.3.5). It logs which one
// is in use when that changes.
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
	if (err == nil || inUse == "none") && p.passwordInUse.Swap(inUse) != inUse {
		p.lg.InfoContext(ctx, "mail password in use", "password", inUse)
	}
	return s, err
}

func signInRejected(ctx context.Context, err error) bool {
	return err != nil && failure.ClassOf(classify(ctx, stepConnect, err)) == failure.AuthDenied
}
