package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// recipients lists the recipients of mails about a changelist, one entry per mail.
func (in *installation) recipients(cl review.Changelist) []string {
	in.t.Helper()
	var to []string
	for _, m := range in.mails(cl) {
		to = append(to, m.To...)
	}
	slices.Sort(to)
	return to
}

// A rejected recipient dead-letters the notify stage. After the operator corrects the
// address, a replay sends only what is unsent (notification 8.1). Findings that nobody can get
// dead-letter the stage with the reason per person, and no address in Temporal, Postgres or the
// log. When the reason is removed, a replay notifies.
func TestRecipientsThatGetNoMail(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}, map[string]string{"b.go": faulty}))
	in.disableBreaker()
	in.env = append(in.env, "CRITICIZER_MAIL_OWNERS=//depot/... lead@corp.test")
	in.inbox.Inject(inbox.Fault{At: inbox.AtRcpt, Code: 550, Enhanced: [3]int{5, 1, 1}, Times: 1})
	worker := in.startWorker()
	in.deadLetter("1", failure.RecipientRejected)
	var failed []struct {
		ID        int64  `json:"id"`
		Recipient string `json:"recipient"`
	}
	if in.criticizerJSON(&failed, "delivery", "list", "--status", "failed"); len(failed) != 1 || len(in.recipients(1)) != 1 || in.recipients(1)[0] == failed[0].Recipient {
		t.Fatalf("failed are %+v, notified are %v, want one of each", failed, in.recipients(1))
	}
	in.criticizer("delivery", "readdress", fmt.Sprint(failed[0].ID), "Renamed@corp.test", "--reason", "INC-1: renamed")
	in.criticizer("deadletter", "replay", "1", "--reason", "INC-1: readdressed")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
	if got := in.recipients(1); len(got) != 2 || !slices.Contains(got, "renamed@corp.test") || slices.Contains(got, failed[0].Recipient) {
		t.Errorf("notified are %v", got)
	}

	env := in.env
	_ = interrupt(worker)
	in.env = append(slices.Clone(env), "CRITICIZER_MAIL_ALLOWED_DOMAINS=example.org")
	in.log.Reset()
	worker = in.startWorker()
	id := in.deadLetter("2", failure.RecipientRejected)
	letter := in.criticizer("deadletter", "show", "2")
	for _, want := range []string{
		"notify", "alice has an address outside of mail.allowed_domains", "an owner has an address outside of mail.allowed_domains", "change mail.opt_out",
	} {
		if !strings.Contains(letter, want) {
			t.Errorf("the dead letter lacks %q:\n%s", want, letter)
		}
	}
	for what, text := range map[string]string{"the dead letter": letter, "the log": in.log.String(), "the history": fmt.Sprint(in.history(id, ""))} {
		if strings.Contains(text, "@corp.test") && what != "the log" || strings.Contains(text, "alice@") || strings.Contains(text, "lead@") {
			t.Errorf("%s has an address:\n%s", what, text)
		}
	}
	_ = interrupt(worker)
	in.env = env
	in.startWorker()
	in.criticizer("deadletter", "replay", "2", "--reason", "INC-1: the domain is allowed")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 2 })
	// The address that change 1 was refused for is not mailed again.
	if got := in.recipients(2); len(got) != 1 || got[0] == failed[0].Recipient {
		t.Errorf("notified are %v", got)
	}
	if calls := in.model.Stats().Calls; calls != 2 {
		t.Errorf("%d model calls, want 2", calls)
	}
}

// Reconciliation repairs the outbox of an ended review: a row that was begun and not
// concluded, a row that was marked before it was sent, and a row that an operator
// requeued. Concurrent runs send each mail once (notification 8.2, 8.3).
func TestReconciliation(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	url := in.listen()
	in.startWorker()
	in.mustStart("--wait", "1")
	unproven := func() float64 { n, _ := in.scrape(url).value("criticizer_deliveries_unproven"); return n }
	checkUnprovenAlert(t, unproven(), "[]")
	in.exec(
		`update criticizer.deliveries set status = 'pending', notified_at = null, notification_id = null, begun = true, last_attempt_at = now() - interval '1 hour'`,
		`insert into criticizer.deliveries (changelist_id, review_version, recipient, status, attempts, last_attempt_at, notification_id, notified_at)
		 values (1, 1, 'bob@corp.test', 'sent', 1, now() - interval '1 hour', 'marked too soon', now() - interval '1 hour')`,
		`insert into criticizer.deliveries (changelist_id, review_version, recipient) values (1, 1, 'carol@corp.test')`,
	)
	// Slow enough for the runs to overlap.
	in.inbox.Inject(inbox.Fault{At: inbox.AtKept, Wait: func() { <-time.After(time.Second) }, Times: 2})
	var runs sync.WaitGroup
	results := make([]activities.Reconciled, 4)
	for i := range results[1:] {
		runs.Go(func() { results[i+1] = in.reconcile(fmt.Sprint("reconcile-", i)) })
	}
	if err := json.Unmarshal([]byte(in.criticizer("delivery", "reconcile", "--json")), &results[0]); err != nil {
		t.Error(err)
	}
	runs.Wait()
	if got := in.recipients(1); !slices.Equal(got, []string{"alice@corp.test", "bob@corp.test", "carol@corp.test"}) {
		t.Errorf("notified are %v: %+v", got, results)
	}
	if n := in.countRows("deliveries", `status = 'sent' and notification_id like 'crz1.%'`); n != 3 {
		t.Errorf("%d rows are sent, want 3: %+v", n, results)
	}
	if n := in.countRows("audit_log", `claimed = 'reconciliation' and action = 'requeue'`); n != 1 {
		t.Errorf("the audit log has %d violations of the order, want 1", n)
	}
	waitFor(t, "the metric of the row that was marked too soon", func() bool { return unproven() > 0 })
	checkUnprovenAlert(t, unproven(), `[{exp_labels: {severity: ticket}, exp_annotations: {
      runbook_url: "https://github.com/criticizer/criticizer/blob/main/docs/runbook.md#where-to-begin", summary: "1 mails are marked sent and were not found at an evidence source"}}]`)
	if again := in.reconcile("reconcile-again"); again.Sent != 0 || len(in.recipients(1)) != 3 {
		t.Errorf("one more run returned %+v", again)
	}
}

// checkUnprovenAlert has Prometheus's own tool evaluate the rule of docs/deploy on the
// metric of a worker.
func checkUnprovenAlert(t *testing.T, metric float64, alerts string) {
	t.Helper()
	promtool := program(t, "prometheus", "promtool")
	rules, err := filepath.Abs("../docs/deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	writeFile(t, file, 0o600, fmt.Sprintf(`rule_files: [%q]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series: [{series: criticizer_deliveries_unproven, values: "%gx5"}]
    alert_rule_test: [{eval_time: 5m, alertname: CriticizerDeliveriesUnproven, exp_alerts: %s}]
`, rules, metric, alerts))
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// reconcile runs one reconciliation outside the schedule.
func (in *installation) reconcile(id string) (done activities.Reconciled) {
	run, err := in.namespace.ExecuteWorkflow(in.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: contract.QueueBookkeeping,
	}, workflows.ReconcileDeliveries)
	if err == nil {
		err = run.Get(in.t.Context(), &done)
	}
	if err != nil {
		in.t.Error(err)
	}
	return done
}
