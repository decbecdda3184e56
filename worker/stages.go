package main

import (
	"context"

	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows"
)

// A stage is one task queue with the activities behind it.
type stage struct {
	name  config.Role
	queue string
	role  store.Role
	build func(context.Context, *plant, *store.DB) (service, error)
	rate  func(config.Worker) float64 // activities per second over all workers; 0 is no limit
	// workflows registers workflows, for a queue that also serves their tasks.
	workflows func(worker.WorkflowRegistry)
	// patient stages retry every failure; see activities.Interceptor.
	patient bool
}

// A service is what a stage runs. ping asks what it talks to, the database left
// out, for a sign of life; nil if there is nothing.
type service struct {
	activities any
	ping       func(context.Context) error
	// beside are further queues of the stage, each braked on its own.
	beside []line
}

func unlimited(config.Worker) float64 { return 0 }

// stages lists all stages, in the order of a review, and the deletion job.
func stages() []stage {
	return []stage{
		{
			name: config.RoleWorkflows, queue: activities.QueueBookkeeping, role: store.RoleBookkeeping,
			build: buildBookkeeping, rate: unlimited, workflows: registerReviews, patient: true,
		},
		{
			name: config.RoleFetch, queue: activities.QueueFetch, role: store.RoleFetch,
			build: buildFetch, rate: func(w config.Worker) float64 { return w.FetchPerSecond },
		},
		{
			name: config.RoleRedact, queue: activities.QueueRedact, role: store.RoleRedact,
			build: buildRedact, rate: unlimited,
		},
		{
			name: config.RoleLLM, queue: activities.QueueLLM, role: store.RoleLLM,
			build: buildLLM, rate: func(w config.Worker) float64 { return w.LLMPerSecond },
		},
		{
			name: config.RoleNotify, queue: activities.QueueNotify, role: store.RoleNotify,
			build: buildNotify, rate: func(w config.Worker) float64 { return w.NotifyPerSecond },
		},
		{
			name: config.RoleRetention, queue: activities.QueueRetention, role: store.RoleRetention,
			build: buildRetention, rate: unlimited, patient: true,
		},
	}
}

func registerReviews(w worker.WorkflowRegistry) {
	w.RegisterWorkflow(workflows.ReviewChangelist)
	w.RegisterWorkflow(workflows.CircuitBreaker)
	w.RegisterWorkflow(workflows.EnforceRetention)
	w.RegisterWorkflow(workflows.ReconcileDeliveries)
	w.RegisterWorkflow(workflows.CatchUp)
	w.RegisterWorkflow(workflows.SettleShelf)
}

func stageNamed(name string) (stage, bool) {
	for _, s := range append(stages(), rewriteStage()) {
		if string(s.name) == name {
			return s, true
		}
	}
	return stage{}, false
}

func buildBookkeeping(ctx context.Context, p *plant, db *store.DB) (service, error) {
	if err := p.namespace.ScheduleRetention(ctx); err != nil {
		return service{}, err
	}
	if err := p.namespace.ScheduleReconciliation(ctx, p.cfg.Mail.ReconcileEvery); err != nil {
		return service{}, err
	}
	if every := p.cfg.P4.CatchUpEvery; every > 0 {
		if err := p.namespace.ScheduleCatchUp(ctx, p.cfg.ServerID, every); err != nil {
			return service{}, err
		}
	}
	limits, err := wiring.InFlight(p.cfg)
	if err != nil {
		return service{}, err
	}
	if err := p.page(ctx, db); err != nil {
		return service{}, err
	}
	p.watchReplays(ctx, db)
	p.tellFigures(db, limits)
	return service{activities: &activities.Bookkeeping{
		Jobs: db, Resets: p.namespace, Queues: p.namespace, Search: db, Shelves: db, Slots: db, Ends: p.namespace, InFlight: limits.Limits(),
	}}, nil
}

func buildFetch(ctx context.Context, p *plant, db *store.DB) (service, error) {
	if err := p.requireAppliedAllowList(ctx, db); err != nil {
		return service{}, err
	}
	changes, err := wiring.Changes(p.lg, p.cfg)
	if err != nil {
		return service{}, err
	}
	owners, err := wiring.Owners(p.cfg)
	if err != nil {
		return service{}, err
	}
	limits, err := wiring.InFlight(p.cfg)
	if err != nil {
		return service{}, err
	}
	raw, err := p.artifacts(db, review.NamespaceRaw)
	return service{activities: &activities.Fetching{
		Changes: tracedChanges{changes}, Submits: changes, Recipients: db, Contents: db, Raw: raw, Owners: owners,
		InFlight: limits, Slots: db, Bots: p.cfg.Mail.Bots,
	}, ping: changes.Ping}, err
}

func buildRedact(_ context.Context, p *plant, db *store.DB) (service, error) {
	pipeline, err := wiring.Pipeline(p.cfg, p.cfg.Redaction.Key)
	if err != nil {
		return service{}, err
	}
	raw, err := p.artifacts(db, review.NamespaceRaw)
	if err != nil {
		return service{}, err
	}
	redacted, err := p.artifacts(db, review.NamespaceRedacted)
	return service{activities: &activities.Redacting{Raw: raw, Redacted: redacted, Pipeline: pipeline}}, err
}

func buildLLM(_ context.Context, p *plant, db *store.DB) (service, error) {
	pipeline, err := wiring.Pipeline(p.cfg, p.cfg.Redaction.Key)
	if err != nil {
		return service{}, err
	}
	reviewer, err := wiring.Reviewer(p.lg, pipeline, p.cfg)
	if err != nil {
		return service{}, err
	}
	redacted, err := p.artifacts(db, review.NamespaceRedacted)
	if err != nil {
		return service{}, err
	}
	reports, err := p.artifacts(db, review.NamespaceReport)
	if err != nil {
		return service{}, err
	}
	answers, err := p.artifacts(db, review.NamespaceAnswer)
	p.tellPrices()
	return service{activities: &activities.Critiquing{
		Redacted: redacted, Reports: reports, Answers: answers, Accounts: db, Reviewer: tracedReviewer{reviewer}, Pipeline: pipeline,
		TokensPerDay: p.cfg.LLM.MaxTokensPerDay, Prices: wiring.Prices(p.cfg),
	}, ping: reviewer.Ping}, err
}

func buildNotify(_ context.Context, p *plant, db *store.DB) (service, error) {
	post, ping, err := newPostman(p)
	if err != nil {
		return service{}, err
	}
	reports, err := p.artifacts(db, review.NamespaceReport)
	if err != nil {
		return service{}, err
	}
	notifying := &activities.Notifying{
		Log: p.lg, Reports: reports, Outbox: db, Post: tracedPost{review.ChannelMail, post},
		Policy:   wiring.Recipients(p.cfg),
		Feedback: review.FeedbackLinks{Address: p.cfg.Feedback.Address, URL: p.cfg.Feedback.URL},
	}
	beside, err := addChannels(p, notifying)
	return service{notifying, ping, beside}, err
}

// newPostman also returns how to ping the mail server.
func newPostman(p *plant) (post *mail.Postman, ping func(context.Context) error, err error) {
	provider, err := wiring.Provider(p.lg, p.cfg)
	if err != nil {
		return nil, nil, err
	}
	post, err = mail.New(p.lg, provider, wiring.Mail(p.cfg))
	return post, provider.Ping, err
}
