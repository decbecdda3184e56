package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A refusal is a review of changelist 4711 that was dead-lettered because the
// mail server refuses alice; bob was notified.
type refusal struct {
	t          *testing.T
	env        map[string]string
	notify     *store.DB
	db         *storetest.Database
	alice, bob int64
}

var refused = review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}

func newRefusal(t *testing.T) refusal {
	t.Helper()
	d := storetest.New(t)
	r := refusal{t: t, notify: d.Open(t, store.RoleNotify), db: d, env: map[string]string{
		"CRITICIZER_DATABASE_URL": d.URL.Reveal(), "CRITICIZER_CONFIG": "/dev/null",
	}}
	books := d.Open(t, store.RoleBookkeeping)
	_, err := books.OpenJob(t.Context(), refused, "run1")
	r.must(err)
	rows, err := r.notify.PrepareDeliveries(t.Context(), 4711, 1, []string{"alice@corp.test", "bob@corp.test"})
	r.must(err)
	for i := range rows {
		rows[i], err = r.notify.BeginDelivery(t.Context(), rows[i])
		r.must(err)
	}
	r.alice, r.bob = rows[0].ID, rows[1].ID
	r.must(r.notify.MarkDeliveryFailed(t.Context(), rows[0], failure.RecipientRejected))
	r.must(r.notify.MarkSent(t.Context(), r.bob, "m1", "accepted"))
	_, err = books.RecordDeadLetter(t.Context(), refused, "run1", failure.DeadLetter{
		ErrorClass: failure.RecipientRejected, Stage: string(review.StageNotify),
	})
	r.must(err)
	return r
}

func (r refusal) must(err error) {
	r.t.Helper()
	testkit.NoError(r.t, err)
}

// run runs criticizer delivery.
func (r refusal) run(args ...string) answer {
	r.t.Helper()
	return say(r.t, r.env, append([]string{"delivery"}, args...)...)
}

func (r refusal) statusOf(id int64) review.DeliveryStatus {
	r.t.Helper()
	row, err := r.notify.Delivery(r.t.Context(), id)
	r.must(err)
	return row.Status
}

// A refused recipient needs an operator's decision; each decision prints the next
// step (notification 8.1).
func TestOperatorSettlesARefusedRecipient(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string // behind the id
		want review.DeliveryStatus
	}{
		"waive":     {[]string{"waive", "ID", "--reason", "INC-1: left the company"}, review.DeliveryWaived},
		"readdress": {[]string{"readdress", "ID", "Alicia@corp.test", "--reason", "INC-1: married"}, review.DeliveryWaived},
		"resend":    {[]string{"resend", "--reason", "INC-1: mailbox exists now", "ID"}, review.DeliveryPending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRefusal(t)
			got := r.run(r.with(tc.args)...)
			if got.status != 0 {
				t.Fatalf("got %+v", got)
			}
			contains(t, got.out, fmt.Sprint(r.alice), "criticizer deadletter replay 1 --reason")
			if got := r.statusOf(r.alice); got != tc.want {
				t.Errorf("row is %s, want %s", got, tc.want)
			}
			var view deliveryView
			if shown := r.run("show", fmt.Sprint(r.alice), "--json"); json.Unmarshal([]byte(shown.out), &view) != nil || len(view.Trail) == 0 {
				t.Fatalf("show: %+v", shown)
			}
			var detail struct{ Reason string }
			last := view.Trail[len(view.Trail)-1]
			if json.Unmarshal(last.Detail, &detail) != nil || !strings.HasPrefix(detail.Reason, "INC-1") || !strings.HasSuffix(last.Action, name) {
				t.Errorf("the audit log ends with %+v, want the decision", last)
			}
			checkRefusal(t, "the second time", r.run(r.with(tc.args)...), 1, "")
		})
	}
}

// with writes alice's row for ID.
func (r refusal) with(args []string) []string {
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = strings.ReplaceAll(arg, "ID", fmt.Sprint(r.alice))
	}
	return filled
}

// A recent attempt may still be in progress: resend is refused until mail.settle
// has passed (notification 10.3).
func TestResendWaitsForTheAttempt(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	rows, err := r.notify.PrepareDeliveries(t.Context(), 4711, 1, []string{"carol@corp.test"})
	r.must(err)
	carol, err := r.notify.BeginDelivery(t.Context(), rows[2])
	r.must(err)
	r.must(r.notify.HoldDelivery(t.Context(), carol))
	resend := []string{"resend", fmt.Sprint(carol.ID), "--reason", "INC-1: not in the mailbox"}
	checkRefusal(t, "at once", r.run(resend...), 1, "")
	if got := r.statusOf(carol.ID); got != review.DeliveryHeld {
		t.Errorf("at once: the row is %s", got)
	}
	r.env["CRITICIZER_MAIL_SETTLE"] = "1ns"
	if got := r.run(resend...); got.status != 0 || r.statusOf(carol.ID) != review.DeliveryPending {
		t.Errorf("later: %+v, and the row is %s", got, r.statusOf(carol.ID))
	}
}

// After a night with a wrong setting, all that failed with a class is sent again at once; a dry
// run changes nothing.
func TestResendOfAClass(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	bulk := []string{"resend", "--class", "RECIPIENT_REJECTED", "--since", "12h", "--changelist", "4711", "--reason", "INC-1: relay repaired"}
	for _, none := range [][]string{
		{"resend", "--class", "TOO_LARGE", "--reason", "INC-1"}, {"resend", "--until", "1h", "--reason", "INC-1"}, {"resend", "--changelist", "4712", "--reason", "INC-1"},
	} {
		if got := r.run(none...); got.status != 0 || r.statusOf(r.alice) != review.DeliveryFailed {
			t.Errorf("%v: %+v, and the row is %s", none, got, r.statusOf(r.alice))
		}
	}
	if got := r.run(append(bulk, "--dry-run")...); got.status != 0 || r.statusOf(r.alice) != review.DeliveryFailed {
		t.Errorf("dry run: %+v, and the row is %s", got, r.statusOf(r.alice))
	} else {
		contains(t, got.out, "alice@corp.test", "would be requeued: 1")
	}
	if got := r.run(bulk...); got.status != 0 || r.statusOf(r.alice) != review.DeliveryPending || r.statusOf(r.bob) != review.DeliverySent {
		t.Errorf("%+v, and the rows are %s and %s", got, r.statusOf(r.alice), r.statusOf(r.bob))
	} else {
		contains(t, got.out, "requeued: 1, skipped: 0, failed: 0", "deadletter replay 1 --reason")
	}
	checkRefusal(t, "neither", r.run("resend", "--reason", "INC-1"), 2, "neither IDs nor filters: name each delivery by its ID, or choose by --class, --changelist,")
	checkRefusal(t, "both", r.run("resend", fmt.Sprint(r.alice), "--class", "TOO_LARGE", "--reason", "INC-1"), 2, "wants IDs")
}

// show prints each attempt with the answer of the server, and status who is not notified and why.
func TestAttemptsAndExclusionsAreShown(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	env := map[string]string{"CRITICIZER_DATABASE_URL": d.URL.Reveal(), "CRITICIZER_CONFIG": "/dev/null"}
	notify := d.Open(t, store.RoleNotify)
	_, err := d.Open(t, store.RoleBookkeeping).OpenJob(t.Context(), refused, "run1")
	testkit.NoError(t, err)
	carol := review.Recipient{User: "carol", Address: "carol@corp.test", Role: review.RoleSubscriber}
	testkit.NoError(t, d.Open(t, store.RoleFetch).SaveRecipients(t.Context(), 4711, 1, []review.Recipient{carol}))
	testkit.NoError(t, notify.DecideRecipients(t.Context(), 4711, 1, []review.RecipientDecision{{Recipient: carol, Why: "opted out"}}))
	rows, err := notify.PrepareDeliveries(t.Context(), 4711, 1, []string{"alice@corp.test"})
	testkit.NoError(t, err)
	row, err := notify.BeginDelivery(t.Context(), rows[0])
	testkit.NoError(t, err)
	testkit.NoError(t, notify.RecordAttempt(t.Context(), row, review.Attempt{Result: "UPSTREAM_UNAVAILABLE", Answer: "451 4.3.0", Detail: "it asks to try again later"}))
	contains(t, say(t, env, "delivery", "show", fmt.Sprint(row.ID)).out, "attempt 1, begun", "UPSTREAM_UNAVAILABLE", "451 4.3.0", "try again later")
	contains(t, say(t, env, "status", "4711").out, "carol", "not notified, opted out")
}

// A dry run of named deliveries counts those whose state allows the decision.
func TestDryRunOfNamedDeliveries(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	for _, tc := range []struct{ decision, say string }{{"waive", "waived"}, {"resend", "requeued"}} {
		got := r.run(tc.decision, fmt.Sprint(r.alice), fmt.Sprint(r.bob), "--reason", "INC-1", "--dry-run")
		if contains(t, got.out, "alice@corp.test", "would be "+tc.say+": 1, skipped: 1"); strings.Contains(got.out, "bob@corp.test") {
			t.Errorf("%s of a row that was sent: %s", tc.decision, got.out)
		}
	}
}

// The next step of a decision leaves out letters whose replay is refused, and reviews of which no
// delivery was changed.
func TestNextStepIsPossible(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	bob := fmt.Sprint(r.bob)
	none := r.run("waive", bob, "--reason", "INC-1")
	if none.status != 1 || strings.Contains(none.out, "deadletter replay") {
		t.Errorf("after a refused decision: %s", none.out)
	}
	_, err := r.db.Conn(t).Exec(t.Context(), `update criticizer.dead_letters set escalated = true`)
	r.must(err)
	escalated := r.run("waive", fmt.Sprint(r.alice), "--reason", "INC-1")
	if contains(t, escalated.out, "waived"); strings.Contains(escalated.out, "deadletter replay") {
		t.Errorf("for an escalated letter: %s", escalated.out)
	}
}

func TestBadDecisionChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	alice, bob := fmt.Sprint(r.alice), fmt.Sprint(r.bob)
	for name, tc := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"a row that was sent":          {"resend " + bob + " --reason INC-1", 1, "--review-version 2 4711"},
		"waiving what was sent":        {"waive " + bob + " --reason INC-1", 1, "it is sent"},
		"no reason":                    {"waive " + alice, 2, "\"reason\" not set"},
		"a secret for a reason":        {"waive " + alice + " --reason ghp_a1B2c3a1B2c3a1B2c3a1B2c3a1B2c3a1B2c3", 1, "seems to contain a secret"},
		"a row that does not exist":    {"waive 99 --reason INC-1", 1, "does not exist"},
		"no row":                       {"waive --reason INC-1", 2, "neither IDs nor filters"},
		"a word for a row":             {"waive alice --reason INC-1", 2, "is not the ID"},
		"an address with a header":     {"readdress " + alice + " a@corp.test\r\nBcc:x@corp.test --reason INC-1", 2, "not a mail address"},
		"an address with a name":       {"readdress " + alice + " Al<a@corp.test> --reason INC-1", 2, "not a mail address"},
		"no new address":               {"readdress " + alice + " --reason INC-1", 2, "wants ID ADDRESS"},
		"another recipient's address":  {"readdress " + alice + " BOB@corp.test --reason INC-1", 1, "has a delivery to that address"},
		"an action that there is none": {"delete " + alice, 2, `unknown command "delete"`},
		"a status that there is none":  {"list --status lost", 2, `--status "lost": want`},
		"a changelist that is none":    {"list --changelist -1", 2, "not a positive number"},
	} {
		checkRefusal(t, name, r.run(strings.Split(tc.args, " ")...), tc.status, tc.says)
	}
	if a, b := r.statusOf(r.alice), r.statusOf(r.bob); a != review.DeliveryFailed || b != review.DeliverySent {
		t.Errorf("rows are %s and %s", a, b)
	}
}

func TestReconcileWithoutASchedule(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	_, where := temporaltest.New(t, contract.Attributes()...)
	r.env["CRITICIZER_TEMPORAL_ADDRESS"], r.env["CRITICIZER_TEMPORAL_NAMESPACE"] = where.Address, where.Name
	checkRefusal(t, "no schedule", r.run("reconcile"), 1, "there is no schedule")
	if got := r.run("reconcile", "4711"); got.status != 2 {
		t.Errorf("with an argument: %+v", got)
	}
}

// Ctrl-C ends the wait, not the reconciliation.
func TestInterruptedReconcile(t *testing.T) {
	t.Parallel()
	namespace, where := temporaltest.New(t, contract.Attributes()...)
	testkit.NoError(t, namespace.Schedule(t.Context(), time.Hour, true, &client.ScheduleWorkflowAction{
		ID: workflows.ReconciliationSchedule, Workflow: "none", TaskQueue: "none",
	}))
	env := map[string]string{
		"CRITICIZER_TEMPORAL_ADDRESS": where.Address, "CRITICIZER_TEMPORAL_NAMESPACE": where.Name,
		"CRITICIZER_DATABASE_URL": "postgres://x@127.0.0.1:1/x", "CRITICIZER_CONFIG": os.DevNull,
	}
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(3*time.Second, interrupt) // no worker ends the run
	var errs strings.Builder
	c := &app{getenv: func(name string) string { return env[name] }, stdout: io.Discard, stderr: &errs}
	if status := c.run(ctx, []string{"delivery", "reconcile"}); status != 1 {
		t.Errorf("status %d", status)
	}
	contains(t, errs.String(), "error: "+errContinues.Error()+"\n", "hint: to see what is unsent: criticizer top")
}

func TestDeliveryList(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	for _, args := range [][]string{{"list", "--json"}, {"list", "--status", "failed", "--json"}} {
		var found []deliveryView
		if got := r.run(args...); json.Unmarshal([]byte(got.out), &found) != nil || len(found) == 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		failed := slices.IndexFunc(found, func(d deliveryView) bool { return d.ID == r.alice })
		if failed < 0 || found[failed].ErrorClass != string(failure.RecipientRejected) || found[failed].JobState != review.JobRetryableFailed {
			t.Errorf("%v: alice's row is missing or wrong: %+v", args, found)
		}
		if bob := slices.ContainsFunc(found, func(d deliveryView) bool { return d.ID == r.bob }); bob != (len(args) == 2) {
			t.Errorf("%v: has the row that was sent: %v", args, bob)
		}
	}
	if none := r.run("list", "--changelist", "4712"); none.out != "no deliveries\n" {
		t.Errorf("list of another changelist: %q", none.out)
	}
	contains(t, r.run("list", "-o", "wide").out, "MESSAGE-ID", "WORKFLOW", "review-p4-4711-v1")
	var rows []struct {
		ID     int64                 `json:"id"`
		Status review.DeliveryStatus `json:"status"`
	}
	err := json.Unmarshal([]byte(r.run("list", "--json").out), &rows)
	if err != nil || len(rows) != 2 || rows[0].ID != r.alice || rows[0].Status != review.DeliveryFailed {
		t.Errorf("list --json: %v, %+v", err, rows)
	}
}
