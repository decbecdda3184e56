package main

import (
	"cmp"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

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
