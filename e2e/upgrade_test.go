package e2e

import (
	"testing"

	"github.com/criticizer/criticizer/review"
)

// A worker of each stage exits if the schema is older than its build, or if a newer
// schema no longer serves its build. It runs on a newer schema that only adds columns
// (docs/upgrade.md).
func TestWorkerAndSchemaOfDifferentVersions(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	refused := func(stage string) {
		t.Helper()
		in.log.Reset()
		if err := in.startWorker("--stages", stage).Wait(); err == nil {
			t.Errorf("the worker of %s ran:\n%s", stage, in.log)
		}
	}
	in.exec("update criticizer.migrations set is_applied = false where version_id = (select max(version_id) from criticizer.migrations)")
	for _, stage := range []string{"workflows", "fetch", "redact", "llm", "notify", "retention"} {
		refused(stage)
	}
	in.exec("update criticizer.migrations set is_applied = true",
		"insert into criticizer.migrations (version_id, is_applied) values (999, true)",
		"update criticizer.schema_serves set oldest_build = 999")
	refused("llm")

	in.exec("update criticizer.schema_serves set oldest_build = 1", "alter table criticizer.jobs add column added_later text")
	in.log.Reset()
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != review.JobSucceeded {
		t.Errorf("a review by the old worker on the new schema: %+v", a)
	}
}
