package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/workflows/contract"
)

const (
	// maxSecretAge is the age at which a secret should be rotated (security 9.3.5).
	maxSecretAge = 90 * 24 * time.Hour
	// minRetention is how long a review can be replayed: while Temporal keeps its history and
	// the database its artifacts.
	minRetention = 7 * 24 * time.Hour
	// minTicketLeft leaves a day to renew the ticket.
	minTicketLeft = 24 * time.Hour
	// maxSkew is far below every retry delay and TTL.
	maxSkew = 5 * time.Second
)

// onCall checks that a dead letter that needs a person can page one. If oncall.required
// is set, the check of the configuration fails otherwise.
func (i installation) onCall(_ context.Context, found *operator.Findings) error {
	if i.cfg.OnCall.Pages() {
		found.OK("pages are sent")
	} else {
		found.Warn("set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL, and oncall.required in production", "no pages are sent about dead letters")
	}
	return nil
}

// secrets checks that keysets can be opened, and the age of the secrets that are in
// files; the age of an environment variable is unknown.
func (i installation) secrets(_ context.Context, found *operator.Findings) error {
	for _, s := range i.cfg.Secrets(i.roles...) {
		if strings.HasSuffix(s.Variable, "_KEYSET") {
			if err := artifact.CheckKeyset(s.Value, i.cfg.Artifacts.KEK); err != nil {
				found.Fail(advise(fmt.Errorf("%s: %w", s.Variable, err), "restore the keyset, or make it readable with artifacts.kek_uri"))
				continue
			}
		}
		path, written := s.File()
		switch old := time.Since(written); {
		case path == "":
			found.OK("%s is set in the environment; its age is unknown", s.Variable)
		case old > maxSecretAge:
			found.Warn("rotate it; how, without an interruption: criticizer help security.md", "%s is %d days old, more than 90", s.Variable, int(old.Hours()/24))
		default:
			found.OK("%s is %s old, in %s", s.Variable, operator.Age(old), path)
		}
	}
	return nil
}

func (i installation) postgres(ctx context.Context, found *operator.Findings) error {
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), "")
	if err != nil {
		return adviseDatabase(i.cfg, err)
	}
	defer db.Close()
	begun := time.Now()
	server, err := db.Server(ctx)
	if err != nil {
		return err
	}
	if err := checkVersion(server.MajorVersion); err != nil {
		return err
	}
	found.OK("version %d", server.MajorVersion)
	if err := checkClock(server.Clock.Sub(begun), time.Since(begun)); err != nil {
		found.Fail(err)
	} else {
		found.OK("its clock agrees with this machine's")
	}
	if server.Superuser {
		found.Warn("give the stages logins of their own; for the roles: criticizer help security.md", "the login is a superuser: the database does not restrict the stages")
	}
	if err := db.CheckSchema(ctx); err != nil { // a migration also creates the roles
		return advise(err, "stop the workers of another build first, then: criticizer migrate")
	}
	found.OK("this build works with the schema")
	var taken []string
	for _, r := range i.roles {
		role := r.Database()
		db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), role)
		if err != nil {
			found.Fail(adviseDatabase(i.cfg, err))
			continue
		}
		db.Close()
		taken = append(taken, string(role))
	}
	if len(taken) > 0 {
		found.OK("the login acts as %s", strings.Join(taken, ", "))
	}
	return nil
}

func checkVersion(major int) error {
	if major < store.OldestPostgres {
		return advise(fmt.Errorf("version %d is too old", major), "upgrade it to %d or newer", store.OldestPostgres)
	}
	return nil
}

// checkClock judges how far the clock of Postgres is ahead of this machine's, which was
// measured with an error of at most slack.
func checkClock(skew, slack time.Duration) error {
	if skew.Abs() > slack+maxSkew {
		return advise(fmt.Errorf("its clock differs from this machine's by %s", skew.Round(time.Second)), "synchronize both by NTP")
	}
	return nil
}

func (i installation) temporal(ctx context.Context, found *operator.Findings) error {
	const advice = "check that the Temporal server is up, temporal.address, and certificates and API key of the profile"
	n, err := dialTemporal(ctx, i.cfg)
	if err != nil {
		return advise(err, advice)
	}
	defer n.Close()
	kept, err := n.Retention(ctx)
	if err != nil {
		return advise(err, advice)
	}
	if kept < minRetention {
		found.Warn(fmt.Sprintf("run: temporal operator namespace update --address %s --namespace %s --retention 720h", i.cfg.Temporal.Address, i.cfg.Temporal.Name),
			"namespace %s keeps histories for %s: a review can only be replayed within that time", i.cfg.Temporal.Name, operator.Age(kept))
	} else {
		found.OK("namespace %s keeps histories for %s", i.cfg.Temporal.Name, operator.Age(kept))
	}
	missing, err := n.MissingAttributes(ctx, contract.Attributes()...)
	if err != nil {
		return advise(err, advice)
	}
	if len(missing) > 0 {
		found.Warn("start a worker, which adds them, or run "+n.CreateAttributes(missing),
			"search attributes are missing: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	} else {
		found.OK("all search attributes exist")
	}
	outages, _ := i.outages(ctx) // the check of the breakers reports the error
	var idle []string
	for _, role := range i.roles {
		queue, err := n.QueueState(ctx, contract.QueueOf(role), false)
		if err != nil {
			return advise(err, advice)
		}
		if !queue.Served && !slices.ContainsFunc(outages, func(o store.Outage) bool { return o.Stage == string(role) }) {
			idle = append(idle, string(role))
		}
	}
	if len(idle) > 0 {
		found.Warn("start a worker, with --roles "+strings.Join(idle, ",")+" or more", "no worker polls for %s", strings.Join(idle, ", "))
	}
	return nil
}

func hasBreaker(role settings.Role) bool { return contract.HasBreaker(contract.QueueOf(role)) }

// outages reads the circuit breakers that are not closed. The database roles of the workers
// that have them read them.
func (i installation) outages(ctx context.Context) ([]store.Outage, error) {
	at := slices.IndexFunc(i.roles, hasBreaker)
	if at < 0 {
		return nil, nil
	}
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), i.roles[at].Database())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.Outages(ctx)
}

func (i installation) breakers(ctx context.Context, found *operator.Findings) error {
	outages, err := i.outages(ctx)
	if err != nil {
		return advise(err, "fix what the check postgres reports first")
	}
	for _, o := range outages {
		found.Warn(o.ErrorClass.Describe().Hint+"; no replay is needed for reviews that wait", "stage %s: %s", o.Stage, outageText(o))
	}
	if len(outages) == 0 {
		found.OK("all are closed")
	}
	return nil
}

func (i installation) perforce(ctx context.Context, found *operator.Findings) error {
	user := i.cfg.P4.User
	changes, err := i.cfg.NewChanges(quiet, nil)
	if err != nil {
		return advise(err, "correct section p4 of the configuration")
	}
	info, err := changes.Info(ctx)
	if err != nil {
		return i.refusedByPerforce(err)
	}
	found.OK("%s, case %s", cmp.Or(info.Version, "a server that hides its version"), cmp.Or(info.CaseHandling, "unknown"))
	account, err := changes.Account(ctx)
	if err != nil {
		return i.refusedByPerforce(err)
	}
	switch left := account.TicketLeft; {
	case left == 0:
		found.OK("user %s is logged in, without expiry", user)
	case left < minTicketLeft:
		found.Warn("renew it with p4 login, for an account of a group whose Timeout is unlimited", "the ticket of user %s expires in %s", user, operator.Age(left))
	default:
		found.OK("user %s is logged in for %s", user, operator.Age(left))
	}
	for _, u := range account.Unreadable {
		found.Fail(advise(fmt.Errorf("user %s cannot read %s: it lacks %s", user, u.Entry, u.Lacks), "grant read access with p4 protect, or remove the entry from p4.allowed_paths"))
	}
	for _, entry := range account.Empty {
		found.Warn("check its spelling in p4.allowed_paths, and the account's permissions", "user %s sees no file under %s", user, entry)
	}
	// Whether the list of a change's files is known to be complete.
	hint := fmt.Sprintf("end the protections table with the line: list user %s * //...", user)
	switch {
	case account.ListsAll:
		found.OK("user %s may list all files", user)
	case i.cfg.P4.MixedChanges == p4.ReviewAllowedOnly:
		found.Warn(hint+", or have the server make changes restricted by default (defaultChangeType)",
			"user %s may not list all files: the description of a change with hidden files is reviewed", user)
	default:
		found.Fail(advise(fmt.Errorf("the protections of user %s do not show that it may list all files: every change is denied, because it may have hidden files", user), "%s", hint))
	}
	if len(account.Unreadable)+len(account.Empty) == 0 {
		found.OK("every allowed path can be read")
	}
	return nil
}

// refusedByPerforce gives the command that logs the account in, or the setting of the
// server's key.
func (i installation) refusedByPerforce(err error) error {
	cfg := i.cfg.P4
	switch class := failure.ClassOf(err); {
	case class == failure.ConfigInvalid && strings.Contains(err.Error(), "p4.fingerprint"):
		return advise(err, "set p4.fingerprint to what p4d -Gf prints on the server's host")
	case class == failure.AuthDenied:
		return advise(err, "write a ticket to %s; to print one: p4 -p %s -u %s login -a -p", sourceOf("CRITICIZER_P4_TICKET", cfg.Ticket), cfg.Port, cfg.User)
	}
	return err
}

func (i installation) allowList(ctx context.Context, found *operator.Findings) error {
	list := i.cfg.AllowList()
	if _, err := checkedList(list); err != nil {
		return err
	}
	const apply = "check the list, then: " + applyCommand
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), store.RoleFetch)
	if err != nil {
		return advise(err, "fix what the check postgres reports first")
	}
	defer db.Close()
	applied, err := db.AppliedAllowList(ctx)
	switch changes := list.Changes(applied.AllowList); {
	case failure.ClassOf(err) == failure.NotFound:
		return advise(err, apply)
	case err != nil:
		return advise(err, "fix what the check postgres reports first")
	case len(changes) > 0:
		return advise(fmt.Errorf("the configuration differs from version %d in force: %s", applied.ID, strings.Join(changes, ", ")), apply)
	}
	found.OK("%s, version %d, in force since %s", plural(len(list.Allowed), "path"), applied.ID, operator.Stamp(applied.AppliedAt))
	return nil
}

// model makes a call of a few tokens, through the guard and with the settings of a
// review.
func (i installation) model(ctx context.Context, found *operator.Findings) error {
	reviewer, err := i.reviewer()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := reviewer.Ping(ctx); err != nil {
		return i.refusedByModel(err)
	}
	found.OK("%s answered in %s", i.cfg.LLM.Model, time.Since(begun).Round(time.Millisecond))
	found.OK("%s", reviewer.Describe(ctx))
	return nil
}

// checkUp reports for each model whether its server reads a prompt of the configured size.
func (i installation) checkUp(ctx context.Context, found *operator.Findings) error {
	reviewer, err := i.reviewer()
	if err != nil {
		return err
	}
	for n, model := range i.cfg.LLM.Models() {
		detail, fix, err := reviewer.CheckUp(ctx, model)
		if n == 0 {
			found.OK("%s", reviewer.Describe(ctx))
		}
		switch {
		case err != nil:
			found.Fail(i.refusedByModel(fmt.Errorf("model %s: %w", model, err)))
		case fix != "": // no large change can be reviewed
			found.Fail(advise(fmt.Errorf("model %s: %s", model, detail), "%s", fix))
		default:
			found.OK("model %s: %s", model, detail)
		}
	}
	return nil
}

func (i installation) reviewer() (*llm.Reviewer, error) {
	pipeline, err := i.cfg.NewPipeline(i.cfg.Redaction.Key)
	if err != nil {
		return nil, advise(err, "set CRITICIZER_REDACTION_KEY to 16 random bytes or more")
	}
	reviewer, err := i.cfg.NewReviewer(quiet, pipeline)
	if err != nil {
		return nil, advise(err, "correct section llm of the configuration")
	}
	return reviewer, nil
}

func (i installation) refusedByModel(err error) error {
	switch failure.ClassOf(err) {
	case failure.NetworkUnreachable, failure.NetworkTimeout:
		return advise(err, "check llm.base_url, %s: that it is up, and that this machine may reach it", i.cfg.LLM.BaseURL)
	case failure.AuthDenied:
		return advise(err, "renew the key in %s", sourceOf("OPENAI_API_KEY", i.cfg.LLM.APIKey))
	}
	return err
}
