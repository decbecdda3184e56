package store_test

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// allRoles are those of the operator and of every role of workers: a new one is checked too.
var allRoles = func() []store.Role {
	roles := []store.Role{store.RoleOperator}
	for _, r := range settings.WorkerRoles {
		roles = append(roles, r.Database())
	}
	return roles
}()

// Each statement fails for all roles except the listed ones (security 9.4.3, 9.4.4).
func TestRolesMayDoNoMore(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows)
	const artifact = ` (id, body, ttl) values (repeat('b', 64), 'x', '1 hour')`
	wantRights(t, conn, allRoles, map[string][]store.Role{
		`select body from raw.artifacts`:                        {store.RoleRedact},
		`select body from redacted.artifacts`:                   {store.RoleLLM},
		`select body from report.artifacts`:                     {store.RoleNotify},
		`insert into raw.artifacts` + artifact:                  {store.RoleFetch},
		`insert into redacted.artifacts` + artifact:             {store.RoleRedact},
		`insert into report.artifacts` + artifact:               {store.RoleLLM},
		`select body from answer.artifacts`:                     {store.RoleLLM},
		`insert into answer.artifacts` + artifact:               {store.RoleLLM},
		`delete from answer.artifacts where expires_at < now()`: {store.RoleRetention},
		`select * from criticizer.token_days`:                   {store.RoleLLM, store.RoleOperator},
		`select * from criticizer.review_records`:               {store.RoleLLM, store.RoleOperator},
		`update criticizer.review_records set tokens = 0`:       {store.RoleLLM},
		`delete from criticizer.review_records`:                 nil,
		`insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally) values (1, 1, 'r', 'clean', 0, false, 'c', '{}')`: {store.RoleLLM},
		`insert into criticizer.outcomes (changelist_id, review_version, report, outcome, of_changelist) values (1, 1, 'r', 'clean', 1)`:                                         nil,
		`update criticizer.outcomes set outcome = 'clean'`:    nil,
		`select outcome from criticizer.outcomes`:             {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.contents set skipped_by = 'users'`: {store.RoleFetch},
		`select criticizer.adopt_outcome(1, 1, 'report:1')`:   {store.RoleNotify},

		`select place, shingles from criticizer.findings`:                       {store.RoleLLM, store.RoleNotify, store.RoleOperator},
		`select path from criticizer.findings`:                                  {store.RoleFetch, store.RoleOperator},
		`select accepted_by from criticizer.findings`:                           {store.RoleOperator},
		`update criticizer.findings set accepted_at = null, accepted_by = null`: {store.RoleOperator},
		`update criticizer.findings set severity = 'low'`:                       nil,
		`delete from criticizer.findings`:                                       nil,
		`select * from criticizer.opinions`:                                     {store.RoleNotify, store.RoleOperator},
		`update criticizer.opinions set note = ''`:                              {store.RoleNotify, store.RoleOperator},
		`delete from criticizer.opinions`:                                       {store.RoleOperator},
		`insert into criticizer.findings (token, changelist_id, review_version, fingerprint, place, path, category, severity) values (repeat('c', 13), 1, 1, 'f3', 'p', '//depot/a.go', 'security', 'high')`:                                        {store.RoleLLM},
		`insert into criticizer.findings (token, changelist_id, review_version, fingerprint, place, path, category, severity, accepted_by, accepted_at) values (repeat('c', 13), 1, 1, 'f3', 'p', '//depot/a.go', 'security', 'high', 'me', now())`: nil,
		`insert into criticizer.opinions (token, said_by, opinion, said_at) values (repeat('b', 13), 'ann', 'wrong', now())`:                                                                                                                        {store.RoleNotify, store.RoleOperator},

		`select id, expires_at from raw.artifacts`:                {store.RoleFetch, store.RoleRedact, store.RoleOperator, store.RoleRetention},
		`select id, expires_at from redacted.artifacts`:           {store.RoleRedact, store.RoleLLM, store.RoleOperator, store.RoleRetention},
		`select id, expires_at from report.artifacts`:             {store.RoleLLM, store.RoleNotify, store.RoleOperator, store.RoleRetention},
		`update raw.artifacts set body = 'y'`:                     {store.RoleFetch},
		`update raw.artifacts set expires_at = now()`:             nil,
		`delete from raw.artifacts where expires_at < now()`:      {store.RoleRetention},
		`delete from redacted.artifacts where expires_at < now()`: {store.RoleRetention},
		`delete from report.artifacts where expires_at < now()`:   {store.RoleRetention},
		`delete from raw.artifacts where id <> ''`:                nil, // it has not expired

		`select address from criticizer.recipients`:             {store.RoleNotify, store.RoleOperator},
		`select user_name from criticizer.recipients`:           {store.RoleNotify, store.RoleOperator},
		`delete from criticizer.recipients`:                     {store.RoleFetch, store.RoleRetention},
		`select recipient from criticizer.deliveries`:           {store.RoleNotify, store.RoleOperator},
		`select notified_at from criticizer.deliveries`:         {store.RoleNotify, store.RoleOperator, store.RoleBookkeeping},
		`update criticizer.deliveries set evidence = ''`:        {store.RoleNotify, store.RoleOperator},
		`delete from criticizer.deliveries`:                     nil,
		`select state, report from criticizer.jobs`:             {store.RoleNotify, store.RoleBookkeeping, store.RoleOperator},
		`select changelist_id, outcome from criticizer.jobs`:    {store.RoleFetch, store.RoleBookkeeping, store.RoleOperator},
		`select run_id from criticizer.jobs`:                    {store.RoleBookkeeping, store.RoleOperator},
		`select * from criticizer.jobs`:                         {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.jobs set updated_at = now()`:         {store.RoleBookkeeping, store.RoleOperator},
		`delete from criticizer.jobs`:                           nil,
		`update criticizer.jobs set outcome = 'clean'`:          nil,
		`update criticizer.jobs set findings = 0`:               nil,
		`update criticizer.jobs set report = null`:              nil,
		`update criticizer.jobs set coverage = ''`:              nil,
		`update criticizer.jobs set skipped_by = 'users'`:       nil,
		`update criticizer.jobs set purged = true`:              nil,
		`select criticizer.finish_job('k', 'report:1')`:         {store.RoleBookkeeping},
		`select criticizer.forget_changelist(1, 'olga', 'T-1')`: {store.RoleOperator},
		`select criticizer.skip_job('k', 'users')`:              {store.RoleBookkeeping},
		`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k3', 3, 1, 's', 'r')`:                                       {store.RoleBookkeeping},
		`insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, state, outcome) values ('k3', 3, 1, 's', 'r', 'succeeded', 'clean')`: nil,
		`select payload from criticizer.dead_letters`:         {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.dead_letters set escalated = true`: {store.RoleBookkeeping, store.RoleOperator},
		`delete from criticizer.dead_letters`:                 nil,
		`select * from criticizer.replays`:                    {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.replays set who = 'somebody else'`: nil,
		`insert into criticizer.replays (dead_letter_id, new_run_id, who, reason) select id, 'r9', 'olga', 'T-1' from criticizer.dead_letters`:                                                  {store.RoleBookkeeping, store.RoleOperator},
		`insert into criticizer.replays (dead_letter_id, new_run_id, who, reason, acknowledged_by, acknowledged_at) select id, 'r9', 'olga', 'T-1', 'olga', now() from criticizer.dead_letters`: nil,
		`update criticizer.replays set acknowledged_by = 'olga', acknowledged_at = now()`:                                                                                                       {store.RoleOperator},
		`select * from criticizer.replay_requests`:                 {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.replay_requests set reason = 'another'`: nil,
		`insert into criticizer.replay_requests (dead_letter_id, who, reason, full_restart) select id, 'olga', 'T-1', false from criticizer.dead_letters`:             {store.RoleOperator},
		`insert into criticizer.deliveries (changelist_id, review_version, recipient) select changelist_id, review_version, 'b@corp.test' from criticizer.deliveries`: {store.RoleNotify, store.RoleOperator},
		`select * from criticizer.pages`:              {store.RoleBookkeeping, store.RoleOperator},
		`update criticizer.pages set sent_at = now()`: {store.RoleBookkeeping},
		`delete from criticizer.pages`:                nil,
		`select * from criticizer.outages`:            {store.RoleBookkeeping, store.RoleFetch, store.RoleRedact, store.RoleLLM, store.RoleNotify, store.RoleOperator},
		`delete from criticizer.outages`:              {store.RoleFetch, store.RoleRedact, store.RoleLLM, store.RoleNotify},
		`update criticizer.watch set due_at = now()`:  {store.RoleBookkeeping},
		`select * from criticizer.allowlist_versions`: {store.RoleFetch, store.RoleOperator},
		`insert into criticizer.allowlist_versions (who, reason, allowed, embargoed) values ('olga', 'T-1', '{//depot/...}', '{}')`:                {store.RoleOperator},
		`insert into criticizer.allowlist_versions (login, who, reason, allowed, embargoed) values ('omar', 'olga', 'T-1', '{//depot/...}', '{}')`: nil,
		`update criticizer.allowlist_versions set reason = 'another'`:                                                                              nil,
		`delete from criticizer.allowlist_versions`:                                                                                                nil,
		`select * from criticizer.audit_log`:                                                                                                       {store.RoleOperator},
		`update criticizer.audit_log set claimed = 'x'`:                                                                                            nil,
		`delete from criticizer.audit_log`:                                                                                                         nil,

		`insert into criticizer.audit_log (claimed, action, object) values ('a', 'b', 'c')`: allRoles,
		`insert into criticizer.audit_log (actor, action, object) values ('a', 'b', 'c')`:   nil,
		`select * from criticizer.figures`:                                                  {store.RoleBookkeeping, store.RoleOperator},
		`select * from criticizer.migrations`:                                               allRoles,
		`delete from criticizer.migrations`:                                                 nil,
		`create table criticizer.mine ()`:                                                   nil,
		`create schema mine`:                                                                nil,
	})
}

// wantRights fails unless each statement fails for exactly those of the roles that are not
// listed.
func wantRights(t *testing.T, conn *pgx.Conn, roles []store.Role, rights map[string][]store.Role) {
	t.Helper()
	for statement, allowed := range rights {
		for _, role := range roles {
			refused := refusal(t, conn, string(role), statement)
			switch {
			case slices.Contains(allowed, role):
				if refused != nil {
					t.Errorf("%s: %s failed: %s", role, statement, refused.Message)
				}
			case refused == nil:
				t.Errorf("%s: %s succeeded", role, statement)
			case refused.Code != "42501":
				t.Errorf("%s: %s: %s", role, statement, refused.Message)
			}
		}
	}
}

func TestOneLoginWithoutSuperuser(t *testing.T) { // a managed database: the owner migrates and takes every role
	t.Parallel()
	conn, login := owned(t)
	lg := slog.New(slog.DiscardHandler)
	as := secret.New("postgres://" + login + ":x@" + net.JoinHostPort(conn.Config().Host, fmt.Sprint(conn.Config().Port)) + "/" + conn.Config().Database)
	for _, role := range allRoles {
		db := must(store.Open(t.Context(), lg, postgres.Config{URL: as}, role))(t)
		testkit.NoError(t, db.CheckSchema(t.Context()))
		db.Close()
	}
}
