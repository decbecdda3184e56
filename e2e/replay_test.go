package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
)

// reset resets the runs that which selects, with the temporal command as an operator
// does. A reset by query is asynchronous.
func (in *installation) reset(kind string, which ...string) {
	in.t.Helper()
	args := append([]string{"workflow", "reset", "--type", kind, "--reason", "INC-42: key renewed"}, which...)
	cmd := exec.CommandContext(in.t.Context(), temporalCommand(in.t), args...)
	cmd.Env = in.operatorEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		in.t.Fatalf("temporal %q: %v: %s", args, err, out)
	}
}

// operatorEnv returns the environment of an operator's shell.
func (in *installation) operatorEnv() []string {
	return slices.Concat(in.env, []string{"TEMPORAL_ADDRESS=" + in.temporal.Address, "TEMPORAL_NAMESPACE=" + in.temporal.Name})
}

// waitForEnd waits for the end of a review's current run and returns its dead letter,
// or a zero one if the review succeeded.
func (in *installation) waitForEnd(workflowID string) failure.DeadLetter {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(in.t.Context(), testTimeout)
	defer cancel()
	err := in.namespace.GetWorkflow(ctx, workflowID, "").Get(ctx, nil)
	if err == nil {
		return failure.DeadLetter{}
	}
	var letter failure.DeadLetter
	dead, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || dead.Details(&letter) != nil {
		in.t.Fatalf("review ended with %v, not with a dead letter", err)
	}
	return letter
}

// deadLetter starts a review that must be dead-lettered and returns its workflow ID.
func (in *installation) deadLetter(cl string, want failure.Class) (workflowID string) {
	in.t.Helper()
	id := in.mustStart(cl).WorkflowID
	if got := in.waitForEnd(id).ErrorClass; got != want {
		in.t.Fatalf("review failed with %q, want %s", got, want)
	}
	return id
}

// disableBreaker runs workers without circuit breakers: their probes would use up faults and
// count as calls.
func (in *installation) disableBreaker() {
	in.env = append(in.env, "CRITICIZER_WORKER_NO_BREAKER=true")
}

// rejectKey makes the model reject the key in the next calls.
func (in *installation) rejectKey(times int) {
	in.t.Helper()
	in.inject(llmsim.Fault{Kind: llmsim.InvalidKey, Times: times})
}

// calls counts the calls to external systems. p4 counts reads of changes only, because
// catch-up runs other p4 commands meanwhile.
type calls struct{ p4, model, mails int }

func (in *installation) calls(cl review.Changelist) calls {
	in.t.Helper()
	log, err := os.ReadFile(in.path("p4log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		in.t.Fatal(err)
	}
	reads := bytes.Count(log, []byte(`"describe"`)) + bytes.Count(log, []byte(`"print"`))
	return calls{reads, in.model.Stats().Calls, len(in.mails(cl))}
}

// A reset with the temporal command to the last workflow task replays only the failed
// stage, even after the worker was killed; a reset to the first one restarts the review
// (processing 8.5). Neither repeats a mail. If the stage's input has expired, its replay fails
// without any external call, and a full restart fetches the change again.
func TestTemporalResetReplays(t *testing.T) {
	t.Parallel()
	temporalCommand(t)
	in := newInstallation(t, newDepot(t, manyChanges(4)...))
	in.disableBreaker()
	worker := in.startWorker()
	rejected := func(cl review.Changelist) (id string, before calls) {
		in.rejectKey(1)
		id = in.deadLetter(fmt.Sprint(cl), failure.AuthDenied)
		return id, in.calls(cl)
	}
	check := func(cl review.Changelist, id string, before calls, fetchAgain bool) {
		t.Helper()
		if letter := in.waitForEnd(id); letter.ErrorClass != "" {
			t.Fatalf("changelist %d: the replay failed with %s", cl, letter.ErrorClass)
		}
		after := in.calls(cl)
		if again := after.p4 > before.p4; again != fetchAgain || after.model != before.model+1 || after.mails != 1 {
			t.Errorf("changelist %d: calls %+v before the reset and %+v after it", cl, before, after)
		}
	}
	id, before := rejected(1)
	in.reset("LastWorkflowTask", "--workflow-id", id)
	check(1, id, before, false)

	id, before = rejected(2)
	in.reset("FirstWorkflowTask", "--workflow-id", id)
	check(2, id, before, true)

	id, before = rejected(3)
	kill(worker)
	in.reset("LastWorkflowTask", "--workflow-id", id)
	in.startWorker()
	check(3, id, before, false)

	id, before = rejected(4)
	expireArtifacts(t, in.database, review.NamespaceRedacted)
	in.reset("LastWorkflowTask", "--workflow-id", id)
	if letter := in.waitForEnd(id); letter.ErrorClass != failure.ArtifactExpired || letter.Hint == "" || in.calls(4) != before {
		t.Fatalf("the replay left %+v and %+v, want ARTIFACT_EXPIRED with a hint and no call", letter, in.calls(4))
	}
	in.reset("FirstWorkflowTask", "--workflow-id", id)
	check(4, id, before, true)
}

// A batch reset with the temporal command resets every failed run, also of reviews that
// a replay has completed. Those make no model call and send no mail.
func TestTemporalBatchResetIsSafe(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}, map[string]string{"b.go": faulty}))
	temporalCommand(t)
	in.disableBreaker()
	in.startWorker()
	in.rejectKey(3)
	repaired := in.deadLetter("1", failure.AuthDenied)
	in.reset("LastWorkflowTask", "--workflow-id", repaired)
	if got := in.waitForEnd(repaired).ErrorClass; got != failure.AuthDenied {
		t.Fatalf("the first replay failed with %q", got)
	}
	dead := in.deadLetter("2", failure.AuthDenied)
	in.reset("LastWorkflowTask", "--workflow-id", repaired)
	if got := in.waitForEnd(repaired).ErrorClass; got != "" {
		t.Fatalf("the second replay failed with %s", got)
	}
	const all, failed = `WorkflowType="ReviewChangelist"`, `ExecutionStatus="Failed"`
	waitFor(t, "the three failed runs in Temporal's list", func() bool { return in.countRuns(failed) == 3 })
	in.reset("LastWorkflowTask", "--query", failed, "--yes")
	waitFor(t, "the three resets", func() bool { return in.countRuns(all) == 7 && in.countRuns(all+` AND ExecutionStatus="Running"`) == 0 })
	if got := in.waitForEnd(dead).ErrorClass; got != "" {
		t.Errorf("the replay of the dead-lettered review failed with %s", got)
	}
	if calls := in.model.Stats().Calls; calls != 5 || len(in.mails(1)) != 1 || len(in.mails(2)) != 1 {
		t.Errorf("%d model calls, %d and %d mails; want 5, and one mail for each review", calls, len(in.mails(1)), len(in.mails(2)))
	}
}

// countRuns counts the runs that match a visibility query.
func (in *installation) countRuns(query string) int64 {
	in.t.Helper()
	counted, err := in.namespace.CountWorkflow(in.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: in.temporal.Name, Query: query,
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return counted.GetCount()
}

// If Postgres is down when a stage fails, its dead letter is recorded after the outage,
// with the times of the failure (processing 8.4). Meanwhile the worker is not ready and names
// the missing part, but stays healthy.
func TestPostgresOutage(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	url := in.listen()
	begin, end := databaseOutage(t, in.database)
	begun := make(chan struct{})
	atModel := sync.OnceFunc(func() { begin(); close(begun) })
	in.beforeAnswer.Store(&atModel)
	in.startWorker()
	ready := func() bool { status, _ := httpGet(t, url+"/readyz"); return status == http.StatusOK }
	waitFor(t, "readiness", ready)
	in.rejectKey(1)
	id := in.mustStart("1").WorkflowID
	<-begun
	if status, body := httpGet(t, url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "database") {
		t.Errorf("without the database: %d %q", status, body)
	}
	if status, _ := httpGet(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d without the database", status)
	}
	if up, found := in.scrape(url).value("criticizer_source_up", "source=postgres"); up != 0 || !found {
		t.Errorf("criticizer_source_up of postgres is %v (%t)", up, found)
	}
	waitFor(t, "a failed attempt to record the dead letter", func() bool { return in.attempts(id, "dead-letter") > 1 })
	end()
	if got := in.waitForEnd(id).ErrorClass; got != failure.AuthDenied {
		t.Fatalf("review failed with %q", got)
	}
	var class string
	var later bool
	in.queryRow(`select error_class, recorded_at > last_failure_at from criticizer.dead_letters where state = 'open'`, &class, &later)
	if class != string(failure.AuthDenied) || !later {
		t.Errorf("recorded %q, after the failure: %t; want AUTH_DENIED, after it", class, later)
	}
	waitFor(t, "readiness", ready)
}

// attempts returns the current attempt of a pending activity, 0 if it is not pending.
func (in *installation) attempts(workflowID, activityID string) int32 {
	in.t.Helper()
	described, err := in.namespace.DescribeWorkflow(in.t.Context(), workflowID, "")
	if err != nil {
		in.t.Fatal(err)
	}
	for _, a := range described.RawResponse.GetPendingActivities() {
		if a.GetActivityId() == activityID {
			return a.GetAttempt()
		}
	}
	return 0
}

// databaseOutage returns functions that begin and end an outage of one database: its
// sessions are terminated and new connections rejected.
func databaseOutage(t *testing.T, d *storetest.Database) (begin, end func()) {
	t.Helper()
	var name string
	if err := d.Conn(t).QueryRow(t.Context(), `select current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	cluster := storetest.Database{URL: secret.New(os.Getenv(storetest.URLVariable))}
	conn := cluster.Conn(t)
	exec := func(statement string) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	begin = func() {
		exec(fmt.Sprintf(`alter database %q allow_connections false`, name))
		exec(fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'`, name))
	}
	return begin, func() { exec(fmt.Sprintf(`alter database %q allow_connections true`, name)) }
}

// expireArtifacts makes all artifacts of a namespace expire an hour ago.
func expireArtifacts(tb testing.TB, d *storetest.Database, ns review.Namespace) {
	tb.Helper()
	_, err := d.Conn(tb).Exec(tb.Context(), fmt.Sprintf(
		`update %s.artifacts set stored_at = stored_at - interval '2 hours', expires_at = stored_at - interval '1 hour'`, ns))
	if err != nil {
		tb.Fatal(err)
	}
}
