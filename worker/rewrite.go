package main

import (
	"cmp"
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	workflows "github.com/criticizer/criticizer/rewrite/workflows"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// rewriteStage works the complaint_rewrite queue, workflows included. It is no
// part of a review, and is served only where -stages names it.
func rewriteStage() stage {
	return stage{
		name: config.RoleRewrite, queue: activities.Queue, role: store.RoleRewrite,
		build: buildRewrite, rate: unlimited, workflows: workflows.Register, patient: true,
	}
}

func buildRewrite(ctx context.Context, p *plant, db *store.DB) (service, error) {
	run, every, err := rewriteRuns(p.cfg.Rewrite.Run)
	if err != nil {
		return service{}, err
	}
	parts, err := rewriteParts(p, db)
	if err != nil {
		return service{}, err
	}
	working, err := activities.New(p.lg, parts, activities.Config{
		Run: run,
		Limits: rewrite.BatchLimits{
			Requests: p.cfg.Rewrite.Batch.MaxRequests, Bytes: int(p.cfg.Rewrite.Batch.MaxBytes), Tokens: p.cfg.Rewrite.Batch.MaxEnqueuedTokens,
		},
		Concurrency:  p.cfg.Rewrite.Run.Concurrency,
		CallTimeout:  p.cfg.Rewrite.Timeout,
		Lease:        p.cfg.Rewrite.Batch.Lease,
		BatchTimeout: p.cfg.Rewrite.Batch.Timeout,
	})
	if err != nil {
		return service{}, err
	}
	p.tellRewrites(db)
	return service{activities: working}, p.namespace.ScheduleRewrites(ctx, every)
}

func rewriteParts(p *plant, db *store.DB) (activities.Parts, error) {
	pipeline, err := wiring.Pipeline(p.cfg, p.cfg.Redaction.Key)
	if err != nil {
		return activities.Parts{}, err
	}
	rewriter, err := wiring.Rewriter(p.lg, pipeline, p.cfg)
	if err != nil {
		return activities.Parts{}, err
	}
	texts, err := artifact.New(db.Blobs(review.NamespaceRewrite), review.NamespaceRewrite, p.cfg.Artifacts.Keyset, artifact.RewriteTTL)
	if err != nil {
		return activities.Parts{}, err
	}
	router, err := rewriteRouter(p.cfg.Rewrite.Route)
	return activities.Parts{
		Queue: db.Rewrites(), Texts: texts, Pipeline: pipeline, Rewriter: rewriter, Batches: rewriter, Router: router, Name: workerName(),
	}, err
}

func rewriteRouter(c config.RewriteRoute) (rewrite.Router, error) {
	router, err := rewrite.NewRouter(rewrite.RoutingDecision{
		Provider: c.Provider, AdapterKind: rewrite.AdapterKind(c.AdapterKind), Model: c.Model,
		PromptVersion: c.PromptVersion, PolicyVersion: c.PolicyVersion, Mode: rewrite.ExecutionMode(c.ExecutionMode),
		CacheEligible: true, MaxRetries: rewrite.DefaultMaxAttempts,
	}, map[rewrite.Strength]string{rewrite.FullReframe: c.FullReframeModel})
	if err != nil {
		return router, failure.Errorf(failure.ConfigInvalid, "rewrite.route: %w", err)
	}
	return router, nil
}

// rewriteRuns is the profile with what the configuration overrides in it, and
// how often each worker runs.
func rewriteRuns(c config.RewriteRun) (rewrite.RunConfig, map[rewrite.Worker]time.Duration, error) {
	profile, err := rewrite.LoadProfile(c.Profile)
	if err != nil {
		return rewrite.RunConfig{}, nil, failure.Errorf(failure.ConfigInvalid, "rewrite.run.profile: %w", err)
	}
	run := profile.RunConfig
	run.MaxJobsPerRun = cmp.Or(c.MaxJobsPerRun, run.MaxJobsPerRun)
	run.MaxRuntimeSeconds = cmp.Or(c.MaxRuntimeSeconds, run.MaxRuntimeSeconds)
	run.ClaimTimeoutSeconds = cmp.Or(c.ClaimTimeoutSeconds, run.ClaimTimeoutSeconds)
	if len(c.RetryBackoffSeconds) > 0 {
		run.RetryBackoffSeconds = c.RetryBackoffSeconds
	}
	if err := run.Validate(); err != nil {
		return run, nil, failure.Errorf(failure.ConfigInvalid, "rewrite.run: %w", err)
	}
	return run, map[rewrite.Worker]time.Duration{
		rewrite.Submitter: c.SubmitEvery,
		rewrite.Collector: c.CollectEvery,
		rewrite.AsyncLane: cmp.Or(c.AsyncEvery, time.Duration(profile.ScheduleSeconds)*time.Second),
	}, nil
}
