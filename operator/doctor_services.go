package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/store"
)

// A review can be replayed as long as its raw change is kept, with -full, or its
// redacted one, if Temporal has its history.
const (
	minRetention  = 7 * 24 * time.Hour
	goodRetention = 30 * 24 * time.Hour
)

// databaseRoles are the roles of the database that the stages act as.
var databaseRoles = map[config.Role]store.Role{
	config.RoleWorkflows: store.RoleBookkeeping, config.RoleFetch: store.RoleFetch, config.RoleRedact: store.RoleRedact,
	config.RoleLLM: store.RoleLLM, config.RoleNotify: store.RoleNotify, config.RoleRetention: store.RoleRetention,
	config.RoleRewrite: store.RoleRewrite,
}

func (p patient) postgres(ctx context.Context) []diagnosis {
	db, err := store.Open(ctx, quiet, p.cfg.Database.URL, "")
	switch {
	case failure.ClassOf(err) == failure.AuthDenied:
		return []diagnosis{failing(err, adviceLogin)}
	case err != nil:
		return []diagnosis{failing(err, "check that Postgres is up and that CRITICIZER_DATABASE_URL names it")}
	}
	defer db.Close()
	server, err := db.Server(ctx)
	if err != nil {
		return []diagnosis{failing(err, "")}
	}
	found := []diagnosis{dated(server.MajorVersion)}
	if found[0].Status == broken {
		return found
	}
	if server.Superuser {
		found = append(found, warning("give the stages logins of their own: docs/security.md lists the roles", "the login is a superuser, so the database holds no stage back"))
	}
	if err := db.CheckSchema(ctx); err != nil { // which makes the roles too
		return append(found, failing(err, "run criticizer migrate of the newest build; docs/upgrade.md has the order"))
	}
	found = append(found, well("the schema is one that this build works with"))
	return append(found, p.takesRoles(ctx)...)
}

// dated judges the version of Postgres.
func dated(major int) diagnosis {
	if major < store.OldestPostgres {
		return failing(fmt.Errorf("version %d is too old", major), fmt.Sprintf("upgrade it to %d or newer", store.OldestPostgres))
	}
	return well("version %d", major)
}

// takesRoles tries the role of each stage (security 9.4.3).
func (p patient) takesRoles(ctx context.Context) (found []diagnosis) {
	var taken []string
	for _, r := range p.roles {
		db, err := store.Open(ctx, quiet, p.cfg.Database.URL, databaseRoles[r])
		if err != nil {
			found = append(found, failing(err, fmt.Sprintf("as an administrator of the database: grant %s to the login of CRITICIZER_DATABASE_URL", databaseRoles[r])))
			continue
		}
		db.Close()
		taken = append(taken, string(databaseRoles[r]))
	}
	if len(taken) > 0 {
		found = append(found, well("the login acts as %s", strings.Join(taken, ", ")))
	}
	return found
}

// reach connects to Temporal.
func (p patient) reach(ctx context.Context) (temporalns.Namespace, error) {
	return temporalns.Dial(ctx, log.NewStructuredLogger(quiet), wiring.Namespace(p.cfg))
}

const adviceTemporal = "check that the Temporal server is up, and temporal.address, temporal.namespace and the API key"

func (p patient) temporal(ctx context.Context) []diagnosis {
	n, err := p.reach(ctx)
	if err != nil {
		return []diagnosis{failing(err, adviceTemporal)}
	}
	defer n.Close()
	kept, err := n.Retention(ctx)
	if err != nil {
		return []diagnosis{failing(err, adviceTemporal+"; temporal operator namespace create makes a namespace")}
	}
	found := []diagnosis{well("namespace %s keeps histories for %s", p.cfg.Temporal.Namespace, age(kept))}
	if kept < minRetention {
		found[0] = warning(fmt.Sprintf("temporal operator namespace update --retention %.0fh -n %s", goodRetention.Hours(), p.cfg.Temporal.Namespace),
			"namespace %s keeps histories for %s: a review can be replayed no longer than that", p.cfg.Temporal.Namespace, age(kept))
	}
	missing, err := n.MissingAttributes(ctx)
	switch {
	case err != nil:
		found = append(found, failing(err, adviceTemporal))
	case len(missing) > 0:
		found = append(found, warning("start a worker, which adds them, or add them with temporal operator search-attribute create",
			"search attributes are missing: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", ")))
	default:
		found = append(found, well("all search attributes are there"))
	}
	return slices.Concat(found, p.priorities(ctx, n), p.served(ctx, n))
}

// priorities says whether people's changes can overtake those of bots.
func (p patient) priorities(ctx context.Context, n temporalns.Namespace) []diagnosis {
	if len(p.cfg.Mail.Bots) == 0 {
		return nil
	}
	switch kept, err := n.KeepsPriorities(ctx); {
	case err != nil:
		return []diagnosis{failing(err, adviceTemporal)}
	case !kept:
		return []diagnosis{warning("set matching.useNewMatcher to true in the server's dynamic configuration, or upgrade the server to 1.31",
			"the server keeps no priorities: changes of mail.bots are reviewed in their turn, not after those of people")}
	}
	return []diagnosis{well("people's changes overtake those of mail.bots")}
}

// served says which stages no worker serves.
func (p patient) served(ctx context.Context, n temporalns.Namespace) []diagnosis {
	var idle []string
	for _, role := range p.roles {
		queue, reviews := stageQueues[role]
		if !reviews {
			continue
		}
		switch served, err := n.Served(ctx, queue); {
		case err != nil:
			return []diagnosis{failing(err, adviceTemporal)}
		case !served:
			idle = append(idle, string(role))
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return []diagnosis{warning("start a worker, with --stages "+strings.Join(idle, ",")+" or more",
		"no worker has asked for work lately, of %s", strings.Join(idle, ", "))}
}

var stageQueues = map[config.Role]string{
	config.RoleWorkflows: activities.QueueBookkeeping, config.RoleFetch: activities.QueueFetch, config.RoleRedact: activities.QueueRedact,
	config.RoleLLM: activities.QueueLLM, config.RoleNotify: activities.QueueNotify, config.RoleRetention: activities.QueueRetention,
}
