package e2e

import (
	"os"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/store/storetest"
)

// upgradeVariable names the environment variable with the folder of an older build's
// commands; make upgradetest sets it.
const upgradeVariable = "UPGRADE_FROM"

// An upgrade from an older build, in the order of docs/upgrade.md, loses no review and
// repeats no mail: neither of a review that has ended, nor of those that wait for the mail
// server, are at the model, are dead-lettered, or begin after the migration.
func TestUpgradeOfAnOldBuild(t *testing.T) {
	old := os.Getenv(upgradeVariable)
	if old == "" {
		t.Skip("make upgradetest runs it")
	}
	in := newInstallation(t, newDepot(t, manyChanges(6)...))
	in.database, in.bin = storetest.NewEmpty(t), old
	in.env = append(in.env, "CRITICIZER_DATABASE_URL="+in.database.URL.Reveal(), "CRITICIZER_WORKER_STOP_GRACE=1s")
	in.disableBreaker()
	in.proxyMail()
	schema := func() (version int) {
		in.queryRow("select criticizer.schema_version()", &version)
		return version
	}

	in.criticizer("migrate")
	in.criticizer("allowlist", "apply", "--reason", "installation")
	before := schema()
	worker := in.startWorker()
	in.mustStart("--wait", "1")
	in.rejectKey(1)
	in.deadLetter("2", failure.AuthDenied)
	in.mailProxy.takeDown()
	in.mustStart("3")
	waitFor(t, "an attempt to send", func() bool { return in.countRows("deliveries", "attempts > 0 and status = 'pending'") > 0 })
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
	calls := in.model.Stats().Calls
	in.mustStart("4")
	waitFor(t, "the model call", func() bool { return in.model.Stats().Calls > calls })

	in.bin = binDir
	in.criticizer("migrate")
	if after := schema(); after <= before {
		t.Fatalf("the schema is %d after the migration and was %d: the older build is none", after, before)
	}
	in.bin = old
	in.mustStart("5")
	waitFor(t, "a review of the old build on the new schema", func() bool { return in.countRows("deliveries", "changelist_id = 5") > 0 })
	if err := interrupt(worker); err != nil {
		t.Errorf("the old worker ended with %v", err)
	}
	in.bin = binDir
	in.startWorker()
	in.mailProxy.bringUp()
	in.mustStart("6")
	in.criticizer("deadletter", "replay", "1", "--reason", "INC-42: key renewed")
	in.awaitMails(6)

	mails := len(in.mails(1))
	if again := in.mustStart("--wait", "1"); !again.Duplicate || len(in.mails(1)) != mails {
		t.Errorf("a repeated start of a review of the old build: %+v, %d mails, want %d", again, len(in.mails(1)), mails)
	}
	if findings := in.report("1").Findings; len(findings) == 0 {
		t.Error("the report of the old build has no findings")
	}
}
