package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// secretsInterval is how long a renewed secret waits for its file to be looked at.
const secretsInterval = 10 * time.Second

// followSecrets keeps the secrets of the stages what their files say until the
// plant closes; SIGHUP has all of them read at once (security 9.3.5).
func (p *plant) followSecrets(ctx context.Context, chosen []stage) {
	var followed []secret.Followed
	for _, s := range p.cfg.Secrets(rolesOf(chosen)...) {
		followed = append(followed, secret.Followed{Name: s.Variable, Value: s.Value, Accept: p.acceptance(s.Variable)})
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { secret.Follow(ctx, p.lg, followed, secretsInterval, hangup) })
	p.closers = append(p.closers, func() {
		stop()
		following.Wait()
		signal.Stop(hangup)
	})
}

// acceptance is what a renewed secret must pass, nil for one that whoever asks
// for it judges.
func (p *plant) acceptance(variable string) func(secret.Value) error {
	return map[string]func(secret.Value) error{
		"CRITICIZER_DATABASE_URL":    store.CheckURL,
		"CRITICIZER_ARTIFACT_KEYSET": artifact.CheckKeyset,
		"CRITICIZER_REDACTION_KEY": func(secret.Value) error {
			return errors.New("it must be the same for redact and llm at any time: restart both, as docs/security.md says")
		},
		"CRITICIZER_ONCALL_WEBHOOK_URL": func(s secret.Value) error {
			pages := p.cfg.OnCall
			pages.WebhookURL = s
			return pages.Check()
		},
	}[variable]
}
