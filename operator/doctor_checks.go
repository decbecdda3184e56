package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/store/artifact"
)

// maxSecretAge is the age at which a secret should be rotated: 90 days
// (security 9.3.5).
const maxSecretAge = 90 * 24 * time.Hour

// checks returns the checks of what the roles need, or those of doctor --model.
func (c *console) checks(roles []config.Role, model bool) []check {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err != nil {
		return []check{{"config", func(context.Context) []checkResult {
			return []checkResult{fail(err, "fix it first, the other checks depend on it: docs/configuration.md describes every field")}
		}}}
	}
	i := installation{cfg, roles}
	if cfg.CheckClearText(roles...) != nil { // no check may send what no worker would
		return []check{{"config", i.configuration}}
	}
	if model {
		return []check{{"model", i.checkUp}}
	}
	var wanted []check
	for _, ch := range []struct {
		check
		when bool
	}{
		{check{"config", i.configuration}, true},
		{check{"secrets", i.secrets}, true},
		{check{"oncall", i.onCall}, i.serves(config.RoleWorkflows)},
		{check{"postgres", i.postgres}, true},
		{check{"temporal", i.temporal}, true},
		{check{"p4", i.perforce}, i.serves(config.RoleFetch)},
		{check{"allowlist", i.allowList}, i.serves(config.RoleFetch)},
		{check{"model", i.model}, i.serves(config.RoleLLM)},
		{check{"mail", i.mail}, i.sendsMail()},
		{check{"journal", i.journal}, i.sendsMail()},
		{check{"bounces", i.bounces}, i.sendsMail()},
		{check{"webhook", i.webhook}, i.serves(config.RoleNotify) && cfg.Webhook.URL.IsSet()},
		{check{"swarm", i.swarm}, i.serves(config.RoleNotify) && cfg.Swarm.URL != ""},
		{check{"rewrite", i.rewrites}, i.serves(config.RoleRewrite)},
		{check{"spool", i.spool}, i.hasSpool()},
	} {
		if ch.when {
			wanted = append(wanted, ch.check)
		}
	}
	return wanted
}

// An installation is the subject of the checks: a configuration and the stages
// that the workers of this machine serve.
type installation struct {
	cfg   *config.Config
	roles []config.Role
}

func (i installation) serves(role config.Role) bool { return slices.Contains(i.roles, role) }

func (i installation) sendsMail() bool {
	return i.serves(config.RoleNotify) || i.serves(config.RoleWorkflows) && i.cfg.OnCall.Address != ""
}

func (i installation) configuration(context.Context) []checkResult {
	err := i.cfg.Check(i.roles...)
	if err == nil {
		return []checkResult{ok("has everything that %s need", stageList(i.roles))}
	}
	var found []checkResult
	_, problems, _ := strings.Cut(err.Error(), "\n")
	for problem := range strings.Lines(problems) {
		problem = strings.TrimSpace(problem)
		what, fix := problem, ""
		if at := strings.LastIndex(problem, ": "); at >= 0 {
			what, fix = problem[:at], problem[at+2:]
		}
		found = append(found, fail(errors.New(what), fix))
	}
	return found
}

// onCall checks that a dead letter that needs a person reaches one. If that is required,
// configuration fails without.
func (i installation) onCall(context.Context) []checkResult {
	if !i.cfg.OnCall.Pages() {
		return []checkResult{warn("set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL, and oncall.required in production", "no pages are sent about dead letters")}
	}
	return []checkResult{ok("pages are sent")}
}

func stageList(roles []config.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// secrets checks that keysets can be opened, and the age of the secrets that are in
// files; the age of an environment variable is unknown.
func (i installation) secrets(context.Context) []checkResult {
	var found []checkResult
	for _, s := range i.cfg.Secrets(i.roles...) {
		if strings.HasSuffix(s.Variable, "_KEYSET") {
			if err := artifact.CheckKeyset(s.Value, wiring.KEK(i.cfg)); err != nil {
				found = append(found, fail(fmt.Errorf("%s: %w", s.Variable, err), "restore the keyset, or make it readable with artifacts.kek_uri; criticizer keyset create makes a first one"))
				continue
			}
		}
		path, written := s.File()
		switch old := time.Since(written); {
		case path == "":
			found = append(found, ok("%s is set in the environment; its age is unknown", s.Variable))
		case old > maxSecretAge:
			found = append(found, warn("rotate it; docs/security.md describes how without an interruption", "%s is %d days old, more than 90", s.Variable, int(old.Hours()/24)))
		default:
			found = append(found, ok("%s is %s old, in %s", s.Variable, age(old), path))
		}
	}
	return found
}

// hasSpool is true for the account of the triggers on their host.
func (i installation) hasSpool() bool {
	_, err := os.ReadDir(i.cfg.Starter.SpoolDir)
	return err == nil
}

func (i installation) spool(context.Context) []checkResult {
	waiting, errWaiting := filepath.Glob(filepath.Join(i.cfg.Starter.SpoolDir, "*.json"))
	refused, errRefused := filepath.Glob(filepath.Join(i.cfg.Starter.SpoolDir, "*.json.refused"))
	switch err := errors.Join(errWaiting, errRefused); {
	case err != nil:
		return []checkResult{fail(fmt.Errorf("list starter.spool_dir: %w", err), "")}
	case len(refused) > 0:
		return []checkResult{warn("docs/trigger.md says what to do with them", "%d requests were set aside: no review of them was started", len(refused))}
	}
	return []checkResult{ok("holds %d requests for the next drain", len(waiting))}
}
