package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A role is one of the --roles of a worker: its queues and their limits.
type role struct {
	name   settings.Role
	help   string // one line
	build  func(context.Context, *runtime, *store.DB) ([]queue, error)
	rate   float64 // activities per second of all workers; 0 is unlimited
	atOnce int     // attempts that a worker runs at the same time; 0 is the SDK's limit
	// workflows registers workflows, for a queue with workflow tasks.
	workflows func(worker.WorkflowRegistry)
	// retryAll roles retry every failure; see [activities.Interceptor].
	retryAll bool
}

// A queue is a task queue with its activities.
type queue struct {
	name       string
	activities any
	// ping checks that the endpoint of the activities responds; nil without one.
	ping func(context.Context) error
}

// redactAtOnce limits the redactions of a worker. They compute: more of them than processors
// only use memory.
const redactAtOnce = 4

// reviewRoles lists the roles of a worker.
func reviewRoles(w settings.Worker) []role {
	return []role{
		{name: settings.RoleWorkflows, help: "the workflow of each review and its job row", build: buildBookkeeping, workflows: registerReviews, retryAll: true},
		{name: settings.RoleFetch, help: "reads changelists with p4", build: buildFetch, rate: w.FetchPerSecond, atOnce: w.FetchAtOnce},
		{name: settings.RoleRedact, help: "masks secrets", build: buildRedact, atOnce: redactAtOnce},
		{name: settings.RoleLLM, help: "calls the model", build: buildLLM, rate: w.LLMPerSecond, atOnce: w.LLMAtOnce},
		{name: settings.RoleNotify, help: "sends mail", build: buildNotify, rate: w.NotifyPerSecond, atOnce: w.NotifyAtOnce},
		{name: settings.RoleRetention, help: "deletes expired data", build: buildRetention, retryAll: true},
	}
}

// parseRoles returns the roles with the names. No name, or "all", is every role.
func parseRoles(names []string, w settings.Worker) ([]role, error) {
	if len(names) == 0 || slices.Equal(names, []string{"all"}) {
		return reviewRoles(w), nil
	}
	var chosen []role
	for _, name := range names {
		found := slices.DeleteFunc(reviewRoles(w), func(s role) bool { return string(s.name) != strings.TrimSpace(name) })
		if len(found) == 0 {
			return nil, fmt.Errorf("unknown role %q in --roles", name)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// aboutRoles describes the roles, one per line.
func aboutRoles() (text string) {
	for _, s := range reviewRoles(settings.Worker{}) {
		text += fmt.Sprintf("  %-10s %s\n", s.name, s.help)
	}
	return text
}

// rolesOf returns the names of the roles.
func rolesOf(chosen []role) []settings.Role {
	var roles []settings.Role
	for _, s := range chosen {
		roles = append(roles, s.name)
	}
	return roles
}

func registerReviews(w worker.WorkflowRegistry) {
	w.RegisterWorkflow(workflows.ReviewChangelist)
	w.RegisterWorkflow(workflows.EnforceRetention)
	w.RegisterWorkflow(workflows.ReconcileDeliveries)
	w.RegisterWorkflow(workflows.CatchUp)
	w.RegisterWorkflow(workflows.SettleShelf)
}

func buildBookkeeping(ctx context.Context, r *runtime, db *store.DB) ([]queue, error) {
	if err := r.schedule(ctx); err != nil {
		return nil, err
	}
	r.sendPages(ctx, db)
	r.watchReviews(ctx, db)
	r.addInstallationMetrics(db)
	return []queue{{name: contract.QueueBookkeeping, activities: &activities.Bookkeeper{
		Jobs: db, Resets: r.namespace, Search: db, Shelves: db,
		ChangeLink: r.cfg.Links.Change,
	}}}, nil
}

// schedule creates or updates the Temporal schedules of the installation.
func (r *runtime) schedule(ctx context.Context) error {
	for _, s := range []struct {
		every  time.Duration
		runNow bool // a new schedule runs at once
		action client.ScheduleWorkflowAction
	}{
		{time.Hour, false, client.ScheduleWorkflowAction{
			ID: workflows.RetentionSchedule, Workflow: workflows.EnforceRetention, StaticSummary: "Deletion of expired data",
		}},
		{15 * time.Minute, false, client.ScheduleWorkflowAction{
			ID: workflows.ReconciliationSchedule, Workflow: workflows.ReconcileDeliveries,
			StaticSummary: "Reconciliation of the outbox with the mail server's records",
		}},
		{10 * time.Minute, true, client.ScheduleWorkflowAction{
			ID: workflows.CatchUpSchedule + "-" + r.cfg.ServerID, Workflow: workflows.CatchUp, Args: []any{r.cfg.ServerID},
			StaticSummary: "Search for changelists without a review",
		}},
	} {
		s.action.TaskQueue = contract.QueueBookkeeping
		if err := r.namespace.Schedule(ctx, s.every, s.runNow, &s.action); err != nil {
			return err
		}
	}
	return nil
}

func buildFetch(ctx context.Context, r *runtime, db *store.DB) ([]queue, error) {
	if err := r.requireAppliedAllowList(ctx, db); err != nil {
		return nil, err
	}
	changes, err := r.cfg.NewChanges(r.lg, db.Credit)
	if err != nil {
		return nil, err
	}
	raw, err := r.artifacts(db, review.NamespaceRaw)
	return []queue{{name: contract.QueueFetch, ping: changes.Ping, activities: &activities.Fetcher{
		Changes: changes, Submits: changes, Recipients: db, Contents: db, Raw: raw,
		Bots: r.cfg.Mail.Recipients.Bots,
	}}}, err
}

func buildRedact(_ context.Context, r *runtime, db *store.DB) ([]queue, error) {
	pipeline, err := r.cfg.NewPipeline(r.cfg.Redaction.Key)
	if err != nil {
		return nil, err
	}
	raw, err := r.artifacts(db, review.NamespaceRaw)
	if err != nil {
		return nil, err
	}
	redacted, err := r.artifacts(db, review.NamespaceRedacted)
	return []queue{{name: contract.QueueRedact, activities: &activities.Redactor{Raw: raw, Redacted: redacted, Pipeline: pipeline}}}, err
}

func buildLLM(_ context.Context, r *runtime, db *store.DB) ([]queue, error) {
	pipeline, err := r.cfg.NewPipeline(r.cfg.Redaction.Key)
	if err != nil {
		return nil, err
	}
	reviewer, err := r.cfg.NewReviewer(r.lg, pipeline)
	if err != nil {
		return nil, err
	}
	redacted, err := r.artifacts(db, review.NamespaceRedacted)
	if err != nil {
		return nil, err
	}
	reports, err := r.artifacts(db, review.NamespaceReport)
	if err != nil {
		return nil, err
	}
	answers, err := r.artifacts(db, review.NamespaceAnswer)
	if err != nil {
		return nil, err
	}
	week := r.cfg.ArtifactConfig(review.NamespaceReport)
	week.TTL = min(week.TTL, 7*24*time.Hour)
	unusable, err := artifact.New(db.Blobs(review.NamespaceReport), week)
	r.addTokenPrices()
	return []queue{{name: contract.QueueLLM, ping: reviewer.Ping, activities: &activities.Model{
		Redacted: redacted, Reports: reports, Unusable: unusable, Answers: answers, Accounts: db, Reviewer: reviewer, Pipeline: pipeline,
		TokensPerDay: r.cfg.LLM.MaxTokensPerDay, Prices: r.cfg.LLM.TokenPrices(), StandIn: r.cfg.LLM.StandIn,
	}}}, err
}

func buildNotify(_ context.Context, r *runtime, db *store.DB) ([]queue, error) {
	keys, err := r.cfg.NewEvidenceKeys()
	if err != nil {
		return nil, err
	}
	mailer, err := r.cfg.NewMailProvider(r.lg, r.cfg.MailServer(keys))
	if err != nil {
		return nil, err
	}
	reports, err := r.artifacts(db, review.NamespaceReport)
	if err != nil {
		return nil, err
	}
	notifying := &activities.Notifier{
		Log: r.lg, Reports: reports, Outbox: db, Post: mailer,
		Policy: r.cfg.RecipientPolicy(),
		Links:  r.cfg.Links.Links,
	}
	if answers := r.cfg.Answers(keys, redactNote); answers != nil {
		notifying.Answers = answers
	}
	channels := addChannels(r, notifying, keys)
	return append([]queue{
		{name: contract.QueueNotify, activities: notifying, ping: mailer.Ping},
		{name: contract.QueueRecords, activities: notifying},
	}, channels...), nil
}

// redactNote masks secrets in what a reader writes about a finding. Its placeholders are not
// compared with others, so their key is new each time.
func redactNote(text string) (string, error) {
	pipeline, err := redaction.New(redaction.Config{Key: secret.New(rand.Text())})
	if err != nil {
		return "", err
	}
	redacted, err := pipeline.String(text)
	return redacted.String(), err
}

func buildRetention(_ context.Context, r *runtime, db *store.DB) ([]queue, error) {
	return []queue{{name: contract.QueueRetention, activities: &activities.Retention{Log: r.lg, Stored: db, JobsTTL: r.cfg.Artifacts.JobsTTL}}}, nil
}

// addChannels adds the configured channels to n. It returns the queues of all
// channels: deliveries to a channel that was removed from the configuration may
// be pending, and an activity has to fail them.
func addChannels(r *runtime, n *activities.Notifier, keys *evidence.Keys) []queue {
	queues := map[review.Channel]queue{}
	for _, name := range review.Channels() {
		queues[name] = queue{name: contract.QueueOf(name), activities: &activities.Poster{Notifier: n}}
	}
	for _, c := range r.cfg.Channels(r.lg, keys) {
		n.Channels = append(n.Channels, c.Channel)
		q := queues[c.Name]
		q.ping = c.Ping
		queues[c.Name] = q
	}
	return slices.Collect(maps.Values(queues))
}

// requireAppliedAllowList fails if the configured allow list is not the applied
// one. Applying a list records who changed it, when and why (security 9.1.5).
func (r *runtime) requireAppliedAllowList(ctx context.Context, db *store.DB) error {
	const hint = `check the list, then, with the configuration of this worker: criticizer allowlist apply --reason "WHY"`
	applied, err := db.AppliedAllowList(ctx)
	if failure.ClassOf(err) == failure.NotFound {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths was never applied: %s", hint)
	}
	if err != nil {
		return err
	}
	if changes := r.cfg.AllowList().Changes(applied.AllowList); len(changes) > 0 {
		return failure.Errorf(failure.ConfigInvalid, "p4.allowed_paths and p4.embargoed_paths differ from the applied version %d of the allow list (%s): %s",
			applied.ID, strings.Join(changes, ", "), hint)
	}
	return nil
}
