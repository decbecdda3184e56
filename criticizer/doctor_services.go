package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A review can be replayed while Temporal keeps its history and the database keeps
// its artifacts.
const (
	minRetention  = 7 * 24 * time.Hour
	goodRetention = 30 * 24 * time.Hour
)

// databaseRoles are the database roles of the stages.
var databaseRoles = map[settings.Role]store.Role{
	settings.RoleWorkflows: store.RoleBookkeeping, settings.RoleFetch: store.RoleFetch, settings.RoleRedact: store.RoleRedact,
	settings.RoleLLM: store.RoleLLM, settings.RoleNotify: store.RoleNotify, settings.RoleRetention: store.RoleRetention,
}

func (i installation) postgres(ctx context.Context) []checkResult {
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), "")
	switch {
	case failure.ClassOf(err) == failure.AuthDenied:
		return []checkResult{fail(err, adviceLogin)}
	case err != nil:
		return []checkResult{fail(err, "check that Postgres is up and that CRITICIZER_DATABASE_URL names it")}
	}
	defer db.Close()
	begun := time.Now()
	server, err := db.Server(ctx)
	if err != nil {
		return []checkResult{fail(err, "")}
	}
	found := []checkResult{checkVersion(server.MajorVersion), checkClock(server.Clock.Sub(begun), time.Since(begun))}
	if found[0].Status == statusFail {
		return found
	}
	if server.Superuser {
		found = append(found, warn("give the stages logins of their own: docs/security.md lists the roles", "the login is a superuser: the database does not restrict the stages"))
	}
	if err := db.CheckSchema(ctx); err != nil { // a migration also creates the roles
		return append(found, fail(err, "run criticizer migrate; docs/upgrade.md has the order"))
	}
	found = append(found, ok("this build works with the schema"))
	return append(found, i.checkRoles(ctx)...)
}

func checkVersion(major int) checkResult {
	if major < store.OldestPostgres {
		return fail(fmt.Errorf("version %d is too old", major), fmt.Sprintf("upgrade it to %d or newer", store.OldestPostgres))
	}
	return ok("version %d", major)
}

// maxSkew is far below every retry delay and TTL.
const maxSkew = 5 * time.Second

// checkClock judges how far the clock of Postgres is ahead of this machine's, which was
// measured with an error of at most slack.
func checkClock(skew, slack time.Duration) checkResult {
	if skew.Abs() > slack+maxSkew {
		return fail(fmt.Errorf("its clock differs from this machine's by %s", skew.Round(time.Second)), "synchronize both by NTP")
	}
	return ok("its clock agrees with this machine's")
}

// checkRoles checks that the login may act as the role of each stage.
func (i installation) checkRoles(ctx context.Context) (found []checkResult) {
	var taken []string
	for _, r := range i.roles {
		db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), databaseRoles[r])
		if err != nil {
			found = append(found, fail(err, fmt.Sprintf("as an administrator of the database: grant %s to the login of CRITICIZER_DATABASE_URL", databaseRoles[r])))
			continue
		}
		db.Close()
		taken = append(taken, string(databaseRoles[r]))
	}
	if len(taken) > 0 {
		found = append(found, ok("the login acts as %s", strings.Join(taken, ", ")))
	}
	return found
}

const adviceTemporal = "check that the Temporal server is up, temporal.address, temporal.namespace, and certificates and API key of the profile"

func (i installation) temporal(ctx context.Context) []checkResult {
	n, err := dialTemporal(ctx, i.cfg)
	if err != nil {
		return []checkResult{fail(err, adviceTemporal)}
	}
	defer n.Close()
	kept, err := n.Retention(ctx)
	if err != nil {
		return []checkResult{fail(err, adviceTemporal+"; temporal operator namespace create creates a namespace")}
	}
	found := []checkResult{ok("namespace %s keeps histories for %s", i.cfg.Temporal.Name, age(kept))}
	if kept < minRetention {
		found[0] = warn(fmt.Sprintf("temporal operator namespace update --retention %.0fh -n %s", goodRetention.Hours(), i.cfg.Temporal.Name),
			"namespace %s keeps histories for %s: a review can only be replayed within that time", i.cfg.Temporal.Name, age(kept))
	}
	missing, err := n.MissingAttributes(ctx, contract.Attributes()...)
	switch {
	case err != nil:
		found = append(found, fail(err, adviceTemporal))
	case len(missing) > 0:
		found = append(found, warn("start a worker, which adds them, or add them with temporal operator search-attribute create",
			"search attributes are missing: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", ")))
	default:
		found = append(found, ok("all search attributes exist"))
	}
	return slices.Concat(found, i.priorities(ctx, n.Namespace), partitions(ctx, n.Namespace), i.served(ctx, n.Namespace))
}

// partitions checks that the server applies rate limits in full.
func partitions(ctx context.Context, n temporal.Namespace) []checkResult {
	write, unequal, err := n.UnequalPartitions(ctx, contract.QueueBookkeeping)
	if err != nil || !unequal { // Temporal Cloud may not report partitions
		return nil
	}
	return []checkResult{warn("set matching.numTaskqueueReadPartitions and matching.numTaskqueueWritePartitions to the same number: docs/scaling.md has a safe order",
		"workers poll more than the %s to which the server writes: it applies only a part of each rate limit", plural(write, "partition"))}
}

// priorities checks that the changes of people can overtake those of bots.
func (i installation) priorities(ctx context.Context, n temporal.Namespace) []checkResult {
	if len(i.cfg.Mail.Recipients.Bots) == 0 {
		return nil
	}
	switch kept, err := n.KeepsPriorities(ctx); {
	case err != nil:
		return []checkResult{fail(err, adviceTemporal)}
	case !kept:
		return []checkResult{warn("set matching.useNewMatcher to true in the server's dynamic configuration, or upgrade the server to 1.31",
			"the server ignores priorities: changes of mail.bots are reviewed in order of arrival, not after those of people")}
	}
	return []checkResult{ok("changes of people overtake those of mail.bots")}
}

// served finds the stages that no worker serves.
func (i installation) served(ctx context.Context, n temporal.Namespace) []checkResult {
	var outages []store.Outage
	if i.hasBreakers() {
		outages, _ = i.outages(ctx) // the check of the breakers reports the error
	}
	var idle []string
	for _, role := range i.roles {
		queue, reviews := contract.StageQueues[string(role)]
		if !reviews {
			continue
		}
		switch served, err := n.Served(ctx, queue); {
		case err != nil:
			return []checkResult{fail(err, adviceTemporal)}
		case !served && !slices.ContainsFunc(outages, func(o store.Outage) bool { return o.Stage == string(role) }):
			idle = append(idle, string(role))
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return []checkResult{warn("start a worker, with --roles "+strings.Join(idle, ",")+" or more",
		"no worker polls for %s", strings.Join(idle, ", "))}
}

// breakerRoles are the stages whose workers have circuit breakers. Their database roles read
// the outages.
var breakerRoles = []settings.Role{settings.RoleFetch, settings.RoleRedact, settings.RoleLLM, settings.RoleNotify}

func (i installation) hasBreakers() bool {
	return slices.ContainsFunc(breakerRoles, i.serves)
}

// outages reads the circuit breakers that are not closed.
func (i installation) outages(ctx context.Context) ([]store.Outage, error) {
	role := breakerRoles[slices.IndexFunc(breakerRoles, i.serves)]
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), databaseRoles[role])
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.Outages(ctx)
}

// breakers warns of the circuit breakers that are not closed.
func (i installation) breakers(ctx context.Context) (found []checkResult) {
	outages, err := i.outages(ctx)
	if err != nil {
		return []checkResult{fail(err, "fix what the check postgres reports first")}
	}
	for _, o := range outages {
		found = append(found, warn(o.Class.Describe().Hint+"; no replay is needed for reviews that wait", "stage %s: %s", o.Stage, outageText(o)))
	}
	if len(found) == 0 {
		return []checkResult{ok("all are closed")}
	}
	return found
}

// webhook probes the URL and posts nothing.
func (i installation) webhook(ctx context.Context) []checkResult {
	if err := i.cfg.NewWebhook(quiet, nil).Ping(ctx); err != nil {
		return []checkResult{fail(err, "check that the service at CRITICIZER_WEBHOOK_URL is up and that this machine may reach it; mails are sent without it")}
	}
	return []checkResult{ok("the URL responds; whether it accepts messages is not checked")}
}

func (i installation) swarm(ctx context.Context) []checkResult {
	if err := i.cfg.NewSwarm(quiet, nil).Ping(ctx); err != nil {
		return []checkResult{fail(err, "check that P4 Code Review is up at swarm.url, and that CRITICIZER_SWARM_TICKET is one of swarm.user for all hosts (p4 login -a -p); mails are sent without it")}
	}
	return []checkResult{ok("%s lists reviews for user %s", i.cfg.Swarm.URL, i.cfg.Swarm.User)}
}
