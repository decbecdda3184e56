package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// Each answer is that of a record, and names the next step.
func TestWhy(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	conn := s.database.Conn(t)
	spool := t.TempDir()
	exec := func(statement string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), statement)
		testkit.NoError(t, err)
	}
	why := func(args ...string) string {
		t.Helper()
		a := s.with(map[string]string{"CRITICIZER_STARTER_SPOOL_DIR": spool}, append([]string{"why"}, args...)...)
		if a.status != 0 || a.err != "" {
			t.Fatalf("why %v: %+v", args, a)
		}
		return a.out
	}
	contains(t, why("1"), "no review", "no search for changelists", "next: on the Perforce host: criticizer-starter drain")
	exec(`insert into criticizer.catch_up (server_id, since, mark) values ('p4', 10, 20)`)
	contains(t, why("5"), "older than the installation", "after 10")
	contains(t, why("21"), "no trigger reported it", "has come to 20")
	contains(t, why("15"), "did not find it")

	body, err := json.Marshal(requestFor(30))
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(filepath.Join(spool, "a.json"), body, 0o600))
	contains(t, why("30"), "waits in the spool since", "criticizer-starter drain")
	testkit.NoError(t, os.Rename(filepath.Join(spool, "a.json"), filepath.Join(spool, "a.json.refused")))
	contains(t, why("30"), "was set aside as", "change-commit 30")

	// Findings to everybody; bob's mail is then declared lost, and waived.
	s.review(100)
	contains(t, why("100"), "succeeded, findings, 1 finding", "1 file reviewed", "alice alice@corp.test: accepted by the server", "criticizer delivery show", "bob bob@corp.test: accepted")
	if out := why("100", "bob"); strings.Contains(out, "alice") || !strings.Contains(out, "bob@corp.test: accepted") {
		t.Errorf("bob is told\n%s", out)
	}
	contains(t, why("100", "carol"), "carol is neither author, subscriber nor owner")
	exec(`update criticizer.deliveries set status = 'held', notified_at = null, begun = true where recipient = 'bob@corp.test'`)
	contains(t, why("100", "bob@corp.test"), "held: it may have been sent", "resend, readdress or waive")
	exec(`update criticizer.deliveries set status = 'failed', error_class = 'RECIPIENT_REJECTED', begun = false where recipient = 'bob@corp.test'`)
	contains(t, why("100", "bob"), "refused for good, RECIPIENT_REJECTED")
	exec(`update criticizer.deliveries set bounced_at = now() where recipient = 'bob@corp.test'`)
	contains(t, why("100", "bob"), "the address bounced at")
	s.must("delivery", "waive", fmt.Sprint(s.deliveryOf(100, "bob@corp.test")), "--reason", "INC-9: has left")
	contains(t, why("100", "bob"), "waived by olga@", "INC-9: has left")
	exec(`update criticizer.deliveries set status = 'failed', error_class = 'RECIPIENT_REJECTED', notified_at = null, notification_id = null where recipient = 'alice@corp.test'`)
	s.must("delivery", "readdress", fmt.Sprint(s.deliveryOf(100, "alice@corp.test")), "dora@corp.test", "--reason", "INC-9: her successor")
	contains(t, why("100", "alice"), "readdressed by olga@", "INC-9: her successor")

	// A clean review goes to the author; lines were hidden, so it is partial.
	s.world.SetDraft(review.Draft{Coverage: review.Coverage{
		{Path: "//depot/a.go", Lines: []review.Lines{{First: 1, Last: 1, State: review.LinesShown}}},
		{Path: "//depot/b.go", Lines: []review.Lines{{First: 4, Last: 7, State: review.LinesHidden, Why: review.SkipNotShown}}},
		{Path: "//depot/c.png", Lines: []review.Lines{{State: review.LinesByDesign, Why: review.SkipBinary}}},
	}, Unread: []review.Unread{{Path: "//depot/b.go", Lines: "4-7", Why: review.SkipRefused, Class: "CONTENT_POLICY", Context: "400"}}, Record: review.Record{Model: "fake", Dropped: map[review.DropReason]int{review.DropNitpick: 2}}})
	s.review(101)
	contains(t, why("101"), "succeeded, partial", "1 of 3 files were not reviewed in full", "why 101 --files", "1 file hidden: "+string(review.SkipNotShown), "1 file by design: "+string(review.SkipBinary), "//depot/b.go, lines 4-7: "+string(review.SkipRefused)+" CONTENT_POLICY 400", "dropped: 2 nitpick")

	// A dead letter, and its author's notice.
	s.review(102, errDenied)
	contains(t, why("102"), "retryable_failed: stage llm failed with AUTH_DENIED, a credential was refused; dead letter "+s.letterOf(102)+" is open",
		"next: renew the credential", "criticizer deadletter show "+s.letterOf(102), "alice, author: to be decided")
	exec(`insert into criticizer.notices (changelist_id, review_version, why, final) values (102, 1, 'opted out (mail.opt_out)', true)`)
	contains(t, why("102"), "the author opted out (mail.opt_out)")
	exec(`update criticizer.notices set why = null, final = false, begun_at = now()`)
	contains(t, why("102"), "a mail to the author is being sent, or its result is unknown")
	exec(`update criticizer.notices set final = true, notified_at = now(), notification_id = 'm'`)
	contains(t, why("102"), "the author was notified at 2")

	s.must("deadletter", "resolve", s.letterOf(102), "--reason", "INC-3: reviewed by hand")
	contains(t, why("102"), "retryable_failed: dead letter "+s.letterOf(102)+" was resolved by olga@", "INC-3: reviewed by hand", "--review-version 2 102", "alice, author: not notified, the review stopped")

	// Skipped, superseded, canceled, terminated.
	s.world.SetChange(review.Change{User: "alice", SkippedBy: review.SkipRuleUser})
	s.review(103)
	contains(t, why("103"), "not_reviewed", "skipped, the user is in skip.users", "--review-version 2 103")
	exec(`update criticizer.jobs set state = 'canceled', closed_how = 'superseded: a newer version of the review has succeeded' where changelist_id = 102`)
	contains(t, why("102"), "review  superseded: a newer version", "--review-version 2 102")

	// Without a worker a run opens no job.
	s.stop()
	for cl, workflow := range map[review.Changelist]string{104: contract.ReviewChangelist, 105: contract.SettleShelf} {
		options := contract.StartOptions(requestFor(cl))
		_, err := s.runs.ExecuteWorkflow(t.Context(), options, workflow, requestFor(cl))
		testkit.NoError(t, err)
	}
	s.count("CriticizerChangelist = 105", 1)
	s.count("CriticizerChangelist = 104", 1)
	contains(t, why("104"), "workflow review-p4-104-v1 is running and has not opened a job", "has to serve the stage workflows")
	contains(t, why("105"), "has not changed for shelf.quiet")

	var answers []explanation
	if err := json.Unmarshal([]byte(why("100", "--json")), &answers); err != nil || len(answers) != 4 || answers[0].About != "review" || answers[2].Version != 1 {
		t.Errorf("%+v, %v", answers, err)
	}
	contains(t, s.criticizer("status", "1").err, "has no review", "to see why: criticizer why 1")
	away := s.with(map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}, "why", "100")
	if contains(t, away.out, "succeeded"); away.status != 1 {
		t.Errorf("without Temporal: %+v", away)
	}
	if none := s.with(map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}, "why", "15", "--json"); none.out != "[]\n" {
		t.Errorf("nothing to say is %q in JSON", none.out)
	}
}

// A review that a person ends says who did it, and why.
func TestWhoEndedAReview(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	silent := failure.Errorf(failure.UpstreamUnavailable, "the model is away")
	silent.RetryAfter = time.Minute
	s.world.Fail("Review", silent, silent)
	begun := map[review.Changelist]client.WorkflowRun{}
	for _, cl := range []review.Changelist{1, 2} {
		run, err := s.runs.ExecuteWorkflow(t.Context(), contract.StartOptions(requestFor(cl)), workflows.ReviewChangelist, requestFor(cl))
		testkit.NoError(t, err)
		begun[cl] = run
	}
	s.count(`CriticizerStage = "llm"`, 2)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.must("why", "1"), "attempt 2") && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
	}
	contains(t, s.must("why", "1"), "in_progress", "llm: waiting, attempt 2, after UPSTREAM_UNAVAILABLE: ", "the model is away", "next at ")
	for _, command := range []string{"status 1", "review list", "review list --json"} {
		contains(t, s.must(strings.Fields(command)...), "attempt 2, after UPSTREAM_UNAVAILABLE: ", "the model is away", "next at ")
	}
	away := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}
	contains(t, s.with(away, "review", "list").out, "in stage llm; its attempt and queue are not known")
	_, err := s.runs.WorkflowService().UpdateTaskQueueConfig(t.Context(), &workflowservice.UpdateTaskQueueConfigRequest{
		Namespace: s.runs.Name, Identity: "olga@desk", TaskQueue: contract.QueueLLM, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		UpdateQueueRateLimit: &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{RateLimit: &taskqueuepb.RateLimit{}, Reason: "INC-7: maintenance"},
	})
	testkit.NoError(t, err)
	for _, command := range []string{"why 1", "status 1", "review list", "top"} {
		contains(t, s.must(strings.Fields(command)...), "llm", "limited to 0 tasks per second by olga@desk: INC-7: maintenance")
	}
	_, err = s.database.Conn(t).Exec(t.Context(), `insert into criticizer.outages (stage, worker, since, half_open, error_class, reason) values ('llm', 'w1', now() - interval '5 minutes', false, 'AUTH_DENIED', 'the key is refused')`)
	testkit.NoError(t, err)
	for _, command := range []string{"why 1", "status 1", "review list", "top"} {
		contains(t, s.must(strings.Fields(command)...), "open for 5m at w1, AUTH_DENIED: the key is refused")
	}
	testkit.NoError(t, s.runs.CancelWorkflow(t.Context(), requestFor(1).Key, ""))
	testkit.NoError(t, s.runs.TerminateWorkflow(t.Context(), requestFor(2).Key, "", "INC-7: too expensive"))
	if err := begun[1].Get(t.Context(), nil); err == nil {
		t.Error("the review was not canceled")
	}
	how, err := s.runs.EndOf(t.Context(), requestFor(2).Key)
	testkit.NoError(t, err)
	_, err = s.database.Open(t, store.RoleBookkeeping).CloseEnded(t.Context(), store.Run{WorkflowID: requestFor(2).Key, RunID: begun[2].GetRunID()}, how)
	testkit.NoError(t, err)
	contains(t, s.must("why", "1"), "review  canceled by ", ": no reason given", "--review-version 2 1", "alice, author: not notified, the review was canceled")
	contains(t, s.must("why", "2"), "was terminated by ", ": INC-7: too expensive", "--review-version 2 2")
	contains(t, s.must("status", "2"), "ended", "was terminated by ", "INC-7")
	contains(t, s.must("review", "list", "--state", "canceled"), "canceled by ")
}

// A queue without a worker, or with a limit that an operator has set, is named.
func TestWhyAQueueWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state temporal.QueueState
		want  string
	}{
		"served":             {temporal.QueueState{Served: true}, ""},
		"without a worker":   {temporal.QueueState{}, "no worker serves its queue"},
		"limited":            {temporal.QueueState{Served: true, Limited: "limited to 0 per second by olga: INC-7"}, "limited to 0 per second by olga: INC-7"},
		"limited, no worker": {temporal.QueueState{Limited: "limited to 0"}, "no worker serves its queue limited to 0"},
	} {
		if got := tt.state.Stuck(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	s := newEnvironment(t)
	s.stop()
	_, err := s.runs.ExecuteWorkflow(t.Context(), contract.StartOptions(requestFor(1)), workflows.ReviewChangelist, requestFor(1))
	testkit.NoError(t, err)
	_, err = s.database.Open(t, store.RoleBookkeeping).OpenJob(t.Context(), requestFor(1), "run")
	testkit.NoError(t, err)
	now, err := s.runs.DescribeWorkflow(t.Context(), requestFor(1).Key, "")
	testkit.NoError(t, err)
	if p := s.runs.PendingOf(t.Context(), now.RawResponse); len(p) != 1 || p[0].Name != "next step" || p[0].State != "waiting" {
		t.Errorf("pending are %+v", p)
	}
}

// deliveryOf returns the ID of the delivery to an address.
func (s *environment) deliveryOf(cl review.Changelist, address string) (id int64) {
	s.t.Helper()
	found, err := s.database.Open(s.t, store.RoleOperator).FindDeliveries(s.t.Context(), store.DeliveryFilter{Changelist: cl})
	testkit.NoError(s.t, err)
	for _, d := range found {
		if d.Recipient == address {
			return d.ID
		}
	}
	testkit.NoError(s.t, errors.New("no delivery to "+address))
	return 0
}
