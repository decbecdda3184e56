package main

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/workflows"
	"github.com/criticizer/criticizer/store"
)

// rewriteStage works the queue of complaint rewrites. It is not part of a review:
// --stages all does not include it.
func rewriteStage() stage {
	return stage{
		name: settings.RoleRewrite, role: store.RoleRewrite, build: buildRewrite, workflows: workflows.Register, retryAll: true,
	}
}

func buildRewrite(ctx context.Context, r *runtime, db *store.DB) ([]queue, error) {
	run, every, err := settings.RewriteRuns(r.cfg.Rewrite)
	if err != nil {
		return nil, err
	}
	parts, err := rewriteParts(r, db)
	if err != nil {
		return nil, err
	}
	working, err := activities.New(r.lg, parts, activities.Config{
		Run: run,
		Limits: rewrite.BatchLimits{
			Requests: r.cfg.Rewrite.Batch.MaxRequests, Bytes: int(r.cfg.Rewrite.Batch.MaxBytes), Tokens: r.cfg.Rewrite.Batch.MaxEnqueuedTokens,
		},
		Concurrency:  r.cfg.Rewrite.Run.Concurrency,
		CallTimeout:  r.cfg.Rewrite.Timeout,
		Lease:        r.cfg.Rewrite.Batch.Lease,
		BatchTimeout: r.cfg.Rewrite.Batch.Timeout,
	})
	if err != nil {
		return nil, err
	}
	r.addReadings("rewrites", databaseReadings(db.RewriteFigures))
	return []queue{{name: activities.Queue, activities: working}}, r.namespace.ScheduleRewrites(ctx, every)
}

func rewriteParts(r *runtime, db *store.DB) (activities.Parts, error) {
	pipeline, err := r.cfg.NewPipeline(r.cfg.Redaction.Key)
	if err != nil {
		return activities.Parts{}, err
	}
	rewriter, err := r.cfg.NewRewriter(r.lg, pipeline)
	if err != nil {
		return activities.Parts{}, err
	}
	texts, err := r.artifacts(db, review.NamespaceRewrite)
	if err != nil {
		return activities.Parts{}, err
	}
	router, err := rewriteRouter(r.cfg.Rewrite.Route)
	return activities.Parts{
		Queue: db.Rewrites(), Texts: texts, Pipeline: pipeline, Provider: rewriter, Router: router, Name: workerName(),
	}, err
}

func rewriteRouter(c settings.RewriteRoute) (rewrite.Router, error) {
	router, err := rewrite.NewRouter(rewrite.RoutingDecision{
		Provider: c.Provider, AdapterKind: rewrite.AdapterKind(c.AdapterKind), Model: c.Model,
		PromptVersion: c.PromptVersion, PolicyVersion: c.PolicyVersion, Mode: rewrite.ExecutionMode(c.ExecutionMode),
	}, map[rewrite.Strength]string{rewrite.FullReframe: c.FullReframeModel})
	if err != nil {
		return router, failure.Errorf(failure.ConfigInvalid, "rewrite.route: %w", err)
	}
	return router, nil
}
