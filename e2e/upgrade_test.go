package e2e

import (
	"strings"
	"testing"
)

// A worker of every stage refuses a schema that it cannot work with, and says
// what to do; on one that only adds it goes on reviewing (docs/upgrade.md).
func TestWorkerAndSchemaOfDifferentVersions(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	exec := func(statement string) {
		t.Helper()
		if _, err := in.database.Conn(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(stage, want string) {
		t.Helper()
		in.log.Reset()
		if err := in.startWorker("--stages", stage).Wait(); err == nil || !strings.Contains(in.log.String(), want) {
			t.Errorf("worker of %s ended with %v, want %q in\n%s", stage, err, want, in.log)
		}
	}
	const newest = "(select max(version_id) from criticizer.migrations)"
	exec("update criticizer.migrations set is_applied = false where version_id = " + newest)
	for _, stage := range []string{"workflows", "fetch", "redact", "llm", "notify", "retention"} {
		refused(stage, "run criticizer migrate of this build")
	}
	exec("update criticizer.migrations set is_applied = true; insert into criticizer.migrations (version_id, is_applied) values (999, true)")
	exec("update criticizer.schema_serves set oldest_build = 999")
	refused("llm", "deploy the newer build")

	exec("update criticizer.schema_serves set oldest_build = 1; alter table criticizer.jobs add column added_later text")
	in.log.Reset()
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.State != "succeeded" {
		t.Errorf("a review by the old worker on the new schema: %+v", a)
	}
}
