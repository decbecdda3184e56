package main

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/config"
)

func TestOnlyWorkflowsAreVersioned(t *testing.T) {
	t.Parallel()
	named := config.Worker{Deployment: "criticizer", BuildID: "7"}
	for name, tt := range map[string]struct {
		cfg       config.Worker
		workflows bool
		want      string // build; empty is not versioned
	}{
		"nothing is configured": {config.Worker{}, true, ""},
		"activities alone":      {named, false, ""},
		"workflows":             {named, true, "7"},
	} {
		got, err := deploymentOf(tt.cfg, tt.workflows)
		if err != nil || got.Version.BuildID != tt.want || got.UseVersioning != (tt.want != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.UseVersioning && got.DefaultVersioningBehavior != workflow.VersioningBehaviorAutoUpgrade {
			t.Errorf("%s: a replay would need the build that is gone: %+v", name, got)
		}
	}
	// A test has no commit.
	if _, err := deploymentOf(config.Worker{Deployment: "criticizer"}, true); err == nil || !strings.Contains(err.Error(), "set worker.build_id") {
		t.Errorf("without a build: %v", err)
	}
}
