package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
)

// maxSecretAge is when a secret is due to be renewed (security 9.3.5).
const maxSecretAge = 90 * 24 * time.Hour

// quiet is the log of what the doctor asks: it reports itself.
var quiet = slog.New(slog.DiscardHandler)

// examinations are those of what the roles need.
func (c console) examinations(roles []config.Role) []examination {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err != nil {
		return []examination{{"config", func(context.Context) []diagnosis {
			return []diagnosis{failing(err, "mend it first, the rest depends on it: docs/configuration.md describes every field")}
		}}}
	}
	p := patient{cfg, roles}
	all := []examination{
		{"config", p.configuration}, {"secrets", p.secrets}, {"postgres", p.postgres}, {"temporal", p.temporal},
	}
	if p.serves(config.RoleFetch) {
		all = append(all, examination{"p4", p.perforce}, examination{"allow-list", p.allowList})
	}
	if p.serves(config.RoleLLM) {
		all = append(all, examination{"model", p.model})
	}
	if p.serves(config.RoleNotify) || p.serves(config.RoleWorkflows) && cfg.OnCall.Address != "" {
		all = append(all, examination{"mail", p.mail}, examination{"journal", p.journal}, examination{"bounces", p.bounces})
	}
	if p.serves(config.RoleNotify) && cfg.Webhook.URL.IsSet() {
		all = append(all, examination{"webhook", p.webhook})
	}
	if p.serves(config.RoleNotify) && cfg.Swarm.URL != "" {
		all = append(all, examination{"swarm", p.swarm})
	}
	if p.serves(config.RoleRewrite) {
		all = append(all, examination{"rewrite", p.rewrites})
	}
	return append(all, examination{"clocks", p.clocks})
}

// A patient is the installation, as the roles see it.
type patient struct {
	cfg   *config.Config
	roles []config.Role
}

func (p patient) serves(role config.Role) bool { return slices.Contains(p.roles, role) }

func (p patient) configuration(context.Context) []diagnosis {
	err := p.cfg.Check(p.roles...)
	if err == nil {
		return []diagnosis{well("holds what %s need", stageList(p.roles))}
	}
	var found []diagnosis
	_, problems, _ := strings.Cut(err.Error(), "\n")
	for problem := range strings.Lines(problems) {
		what, fix, _ := cutLast(strings.TrimSpace(problem), ": ")
		found = append(found, failing(errors.New(what), fix))
	}
	return found
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func stageList(roles []config.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// secrets looks at where they come from. Only a file has an age (security 9.3.5).
func (p patient) secrets(context.Context) []diagnosis {
	var found []diagnosis
	for _, s := range p.cfg.Secrets(p.roles...) {
		path, written := s.File()
		switch old := time.Since(written); {
		case path == "":
			found = append(found, well("%s is set in the environment, which does not tell its age", s.Variable))
		case old > maxSecretAge:
			found = append(found, warning("renew it; docs/security.md says how without a gap", "%s is %d days old, more than 90", s.Variable, int(old.Hours()/24)))
		default:
			found = append(found, well("%s is %s old, in %s", s.Variable, age(old), path))
		}
	}
	return found
}
