package main

import (
	"cmp"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

// optionsOf returns the options of the workers of a stage: how many attempts they run, how
// often they start one, and how long a stop may take.
func optionsOf(s stage, cfg config.Worker) (worker.Options, error) {
	deployment, err := deploymentOf(cfg, s.workflows != nil)
	o := worker.Options{
		DeploymentOptions:     deployment,
		DisableWorkflowWorker: s.workflows == nil,
		WorkerStopTimeout:     cfg.StopGrace + reportTimeout,
	}
	if s.rate != nil {
		o.TaskQueueActivitiesPerSecond = s.rate(cfg)
	}
	if s.atOnce != nil {
		o.MaxConcurrentActivityExecutionSize = s.atOnce(cfg)
	}
	return o, err
}

// deploymentOf makes a worker of workflows a version of the configured deployment.
// Workers of activities are not versioned: the inputs and results of activities
// stay compatible between builds.
//
// Running reviews move to the current version (auto-upgrade). Pinned reviews would
// need the old build as long as their dead letters can be replayed, a month and
// more, because a reset keeps the pin. The replay tests (workflows/replay_test.go)
// prove that recorded histories run on this build.
func deploymentOf(cfg config.Worker, workflows bool) (worker.DeploymentOptions, error) {
	if cfg.Deployment == "" || !workflows {
		return worker.DeploymentOptions{}, nil
	}
	build := cmp.Or(cfg.BuildID, cli.Commit())
	if build == "" {
		return worker.DeploymentOptions{}, failure.Errorf(failure.ConfigInvalid,
			"worker.deployment: this build records no commit: set worker.build_id")
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildID: build},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, nil
}
