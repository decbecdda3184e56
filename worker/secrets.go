package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/store/artifact"
)

// secretsInterval is how often the files of the secrets are read.
const secretsInterval = 10 * time.Second

// followSecrets updates the secrets of the stages from their files in the background, at
// once on SIGHUP: an emergency rotation (security 9.3.5) needs no restart.
func (r *runtime) followSecrets(ctx context.Context, chosen []role) {
	var followed []secret.Followed
	for _, s := range r.cfg.Secrets(rolesOf(chosen)...) {
		followed = append(followed, secret.Followed{Name: s.Variable, Value: s.Value, Accept: r.checkOf(s.Variable)})
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	r.closers = append(r.closers, func() { signal.Stop(hangup) })
	r.background(ctx, func(ctx context.Context) { secret.Follow(ctx, r.lg, followed, secretsInterval, hangup) })
}

// checkOf returns the check that a new value of a secret must pass. It is nil for
// a secret that only the service it belongs to can check.
func (r *runtime) checkOf(variable string) func(secret.Value) error {
	if strings.HasSuffix(variable, "_KEYSET") {
		return func(ks secret.Value) error { return artifact.CheckKeyset(ks, r.cfg.Artifacts.KEK) }
	}
	return map[string]func(secret.Value) error{
		"CRITICIZER_DATABASE_URL": func(s secret.Value) error {
			database := r.cfg.DatabaseConfig()
			database.URL = s
			return database.Check()
		},
		"CRITICIZER_EVIDENCE_KEY":          evidence.Check,
		"OPENAI_API_KEY":                   secret.CheckKeys,
		"CRITICIZER_SMTP_PASSWORD":         secret.CheckKeys,
		"CRITICIZER_MAIL_JOURNAL_PASSWORD": secret.CheckKeys,
		"CRITICIZER_MAIL_BOUNCES_PASSWORD": secret.CheckKeys,
		"CRITICIZER_REDACTION_KEY": func(secret.Value) error {
			return errors.New("it must be the same for redact and llm at any time: restart both, as in: criticizer help security.md")
		},
		"CRITICIZER_ONCALL_WEBHOOK_URL": func(s secret.Value) error {
			renewed := *r.cfg
			renewed.OnCall.WebhookURL = s
			var p config.Problems
			settings.Program.Check(&renewed, &p, "oncall")
			return p.Err()
		},
	}[variable]
}
