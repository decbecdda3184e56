package main

import (
	"testing"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

func TestOnlyWorkflowsAreVersioned(t *testing.T) {
	t.Parallel()
	named := config.Worker{Deployment: "criticizer", BuildID: "7"}
	for name, tt := range map[string]struct {
		cfg       config.Worker
		workflows bool
		want      string // build; empty is not versioned
	}{
		"no deployment":    {config.Worker{}, true, ""},
		"activities alone": {named, false, ""},
		"workflows":        {named, true, "7"},
	} {
		got, err := deploymentOf(tt.cfg, tt.workflows)
		if err != nil || got.Version.BuildID != tt.want || got.UseVersioning != (tt.want != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.UseVersioning && got.DefaultVersioningBehavior != workflow.VersioningBehaviorAutoUpgrade {
			t.Errorf("%s: reviews are pinned to the build: %+v", name, got)
		}
	}
	// A test binary records no commit.
	if _, err := deploymentOf(config.Worker{Deployment: "criticizer"}, true); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("without a build: %v", err)
	}
}
