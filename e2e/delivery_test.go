package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// recipients lists who got mail about the changelist, once per mail.
func (in *installation) recipients(cl review.Changelist) []string {
	in.t.Helper()
	var to []string
	for _, m := range in.mails(cl) {
		to = append(to, m.To...)
	}
	slices.Sort(to)
	return to
}

// Review-notification 8.1: the operator corrects a refused recipient and
// replays; only what is unsent is sent.
func TestRefusedRecipientIsReaddressed(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.env = append(in.env, "CRITICIZER_MAIL_OWNERS=//depot/....go lead@corp.test, //depot/... alice@corp.test")
	in.disableBreaker()
	refusal := inbox.Fault{Stage: inbox.StageRcpt, Code: 550, Enhanced: [3]int{5, 1, 1}}
	in.inbox.Inject(refusal)
	in.startWorker()
	if _, err := in.start("--wait", "1"); err == nil || !strings.Contains(err.Error(), "RECIPIENT_REJECTED") {
		t.Fatalf("ended with %v, want a dead letter for the recipient", err)
	}
	if got := in.recipients(1); !slices.Equal(got, []string{"lead@corp.test"}) {
		t.Fatalf("told are %v, want the owner whom nobody refused", got)
	}
	var failed []struct {
		ID        int64  `json:"id"`
		Recipient string `json:"recipient"`
	}
	if err := json.Unmarshal([]byte(in.criticizer("delivery", "list", "--status", "failed", "--json")), &failed); err != nil || len(failed) != 1 || failed[0].Recipient != "alice@corp.test" {
		t.Fatalf("failed are %+v, %v", failed, err)
	}
	output := in.criticizer("delivery", "readdress", fmt.Sprint(failed[0].ID), "Alicia@corp.test", "--reason", "INC-1: renamed")
	letter := regexp.MustCompile(`deadletter replay (\d+)`).FindStringSubmatch(output)
	if letter == nil {
		t.Fatalf("readdress does not say how to go on:\n%s", output)
	}
	in.criticizer("deadletter", "replay", letter[1], "--reason", "INC-1: readdressed")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", `state = 'succeeded'`) == 1 })
	if got := in.recipients(1); !slices.Equal(got, []string{"alicia@corp.test", "lead@corp.test"}) {
		t.Errorf("told are %v", got)
	}
	if calls := in.model.Stats().Calls; calls != 1 {
		t.Errorf("the model was asked %d times", calls)
	}
}

// Review-notification 10.4: the mail of a rerun answers the earlier one and says
// what has changed, which is nothing.
func TestRerunAnswersTheEarlierMail(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	first := in.mustStart("--wait", "1")
	earlier := in.mails(1)[0]
	in.mustStart("--wait", "--review-version", "2", "1")
	for _, m := range in.mails(1) {
		raw := in.raw(m.ID)
		if m.ID == earlier.ID {
			if strings.Contains(raw, "In-Reply-To") || strings.Contains(raw, "Since version") {
				t.Errorf("the first mail speaks of an earlier one:\n%s", raw)
			}
			continue
		}
		want := fmt.Sprintf("Since version 1: 0 new, %d still open, 0 resolved.", first.Findings)
		if !strings.Contains(raw, "In-Reply-To: <"+earlier.MessageID+">") || !strings.Contains(raw, want) {
			t.Errorf("the second mail does not answer %s, or lacks %q:\n%s", earlier.MessageID, want, raw)
		}
	}
}

// Review-notification 8.2, 8.3: a row that was begun and not concluded, one that
// was marked before it was sent, and one that an operator has requeued, of a
// review that is over. Several runs at once send each mail once.
func TestReconciliation(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	in.mustStart("--wait", "1")
	admin := in.database.Conn(t)
	for _, statement := range []string{
		`update criticizer.deliveries set status = 'pending', notified_at = null, notification_id = null, begun = true, last_attempt_at = now() - interval '1 hour'`,
		`insert into criticizer.deliveries (changelist_id, review_version, recipient, status, attempts, last_attempt_at, notification_id, notified_at)
		 values (1, 1, 'bob@corp.test', 'sent', 1, now() - interval '1 hour', 'marked too soon', now() - interval '1 hour')`,
		`insert into criticizer.deliveries (changelist_id, review_version, recipient) values (1, 1, 'carol@corp.test')`,
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// Slow enough for the runs to overlap.
	in.inbox.Inject(inbox.Fault{Stage: inbox.StageKept, Hang: time.Second, Times: 2})
	var runs sync.WaitGroup
	results := make([]activities.Reconciled, 4)
	for i := range results[1:] {
		runs.Go(func() { results[i+1] = in.reconcileNow(fmt.Sprint("reconcile-", i)) })
	}
	if err := json.Unmarshal([]byte(in.criticizer("delivery", "reconcile", "--json")), &results[0]); err != nil {
		t.Error(err)
	}
	runs.Wait()
	if got := in.recipients(1); !slices.Equal(got, []string{"alice@corp.test", "bob@corp.test", "carol@corp.test"}) {
		t.Errorf("told are %v: %+v", got, results)
	}
	if n := in.countRows("deliveries", `status = 'sent' and notification_id like 'crz1.%'`); n != 3 {
		t.Errorf("%d rows are sent, want 3: %+v", n, results)
	}
	if n := in.countRows("audit_log", `actor = 'reconciliation' and action = 'requeue'`); n != 1 {
		t.Errorf("%d breaches of the order are in the audit log, want 1", n)
	}
	if again := in.reconcileNow("reconcile-again"); again.Sent != 0 || len(in.recipients(1)) != 3 {
		t.Errorf("one more run did %+v", again)
	}
}

// reconcileNow runs one reconciliation besides the schedule.
func (in *installation) reconcileNow(id string) (done activities.Reconciled) {
	run, err := in.namespace.ExecuteWorkflow(in.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.QueueBookkeeping,
	}, workflows.ReconcileDeliveries)
	if err == nil {
		err = run.Get(in.t.Context(), &done)
	}
	if err != nil {
		in.t.Error(err)
	}
	return done
}
