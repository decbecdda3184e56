package main

import (
	"cmp"
	"errors"

	"go.temporal.io/sdk/contrib/sysinfo"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

// sdkAtOnce is the SDK's limit of attempts that a worker runs at the same time.
const sdkAtOnce = 1000

// newResources measures the memory and the processors in use, for all workers of the
// process. It returns nil if worker.tuner does not need that.
func newResources(cfg config.Worker) *worker.ResourceController {
	if cfg.Tuner != config.TunerResource {
		return nil
	}
	options := worker.DefaultResourceControllerOptions()
	options.InfoSupplier = sysinfo.SysInfoProvider()
	return worker.NewResourceController(options)
}

// setSlots sets how many tasks of a stage a worker polls and runs at the same time.
func (r *runtime) setSlots(o *worker.Options, s stage) error {
	if r.cfg.Worker.AutoscalePollers {
		o.WorkflowTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
		o.ActivityTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	}
	atOnce := 0
	if s.atOnce != nil {
		atOnce = s.atOnce(r.cfg.Worker)
	}
	if r.resources == nil {
		o.MaxConcurrentActivityExecutionSize = atOnce
		return nil
	}
	attempts := worker.DefaultActivityResourceBasedSlotSupplierOptions()
	attempts.MaxSlots = cmp.Or(atOnce, sdkAtOnce)
	other := worker.DefaultWorkflowResourceBasedSlotSupplierOptions()
	var errs []error
	// Each kind of task has its own supplier, which remembers when it gave its last slot.
	supplier := func(options worker.ResourceBasedSlotSupplierOptions) worker.SlotSupplier {
		supplier, err := worker.NewResourceBasedSlotSupplier(r.resources, options)
		errs = append(errs, err)
		return supplier
	}
	tuner, err := worker.NewCompositeTuner(worker.CompositeTunerOptions{
		ActivitySlotSupplier: supplier(attempts), SessionActivitySlotSupplier: supplier(attempts),
		WorkflowSlotSupplier: supplier(other), LocalActivitySlotSupplier: supplier(other), NexusSlotSupplier: supplier(other),
	})
	o.Tuner = tuner
	return errors.Join(append(errs, err)...)
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
