package main

import (
	"cmp"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

// deploymentOf makes a worker of workflows a version of the deployment that is
// configured. Activities alone are not versioned: what they take and give stays
// compatible, and any build may do them.
//
// Running reviews go over to the current version. Pinned to the build that began
// them, they would need it for as long as a dead letter may be replayed, which
// is a month and more: a reset runs under the same pin. Going over is safe, for
// histories that earlier builds recorded replay (workflows/replay_test.go).
func deploymentOf(cfg config.Worker, workflows bool) (worker.DeploymentOptions, error) {
	if cfg.Deployment == "" || !workflows {
		return worker.DeploymentOptions{}, nil
	}
	build := cmp.Or(cfg.BuildID, cli.Commit())
	if build == "" {
		return worker.DeploymentOptions{}, failure.Errorf(failure.ConfigInvalid,
			"worker.deployment: this worker does not know the commit it was built from: set worker.build_id")
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildID: build},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, nil
}
