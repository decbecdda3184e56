package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// commandVariable names the temporal command to test with. Without it, one on
// PATH is taken, or the one that the embedded stack has built.
const temporalVariable = "CRITICIZER_TEST_TEMPORAL_COMMAND"

// temporalCommand finds the stock command line. Without one it skips the test,
// except in CI, where it fails it.
func temporalCommand(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv(temporalVariable), "temporal", "../build/bin/temporal"} {
		if found, err := exec.LookPath(name); err == nil {
			if found, err = filepath.Abs(found); err == nil {
				return found
			}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("there is no temporal command: set %s", temporalVariable)
	}
	t.Skipf("SKIPPED, no temporal command on PATH or in build/bin: set %s", temporalVariable)
	return ""
}

// reset resets with the stock command line, as an operator does; which says
// what. It only begins a reset by query.
func (in *installation) reset(kind string, which ...string) {
	in.t.Helper()
	args := append([]string{"workflow", "reset", "--type", kind, "--reason", "INC-42: key renewed"}, which...)
	cmd := exec.CommandContext(in.t.Context(), temporalCommand(in.t), args...)
	cmd.Env = in.operatorEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		in.t.Fatalf("temporal %q: %v: %s", args, err, out)
	}
}

// shellEnv is the environment of an operator's shell.
func (in *installation) operatorEnv() []string {
	return slices.Concat(in.env, []string{"TEMPORAL_ADDRESS=" + in.temporal.Address, "TEMPORAL_NAMESPACE=" + in.temporal.Name})
}

// ended waits for the current run of a review to end and returns the dead
// letter it left, which has no class if it left none.
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

// die starts a review, which must be dead-lettered, and returns its workflow id.
func (in *installation) deadLetter(cl string, want failure.Class) (workflowID string) {
	in.t.Helper()
	id := in.mustStart(cl).WorkflowID
	if got := in.waitForEnd(id).ErrorClass; got != want {
		in.t.Fatalf("review died of %q, want %s", got, want)
	}
	return id
}

// leaveBreakerAlone keeps the worker from stopping a queue and probing for it,
// which would use up faults and count as calls.
func (in *installation) disableBreaker() {
	in.env = append(in.env, "CRITICIZER_BREAKER_BY_HAND_ONLY=true")
}

// denyKey makes the model refuse the key in the coming calls.
func (in *installation) rejectKey(times int) {
	in.t.Helper()
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.InvalidKey, Times: times}); err != nil {
		in.t.Fatal(err)
	}
}

// calls is what the outside has seen so far of reviews; of p4 what reads a change,
// for the search for changelists, which asks other things, runs beside them.
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

// Criticizer-processing 8.5: a stock reset to the last workflow task replays
// the failed stage alone, one to the first restarts the review; nobody is told
// twice by either.
func TestStockResetReplays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind string
		killWorker bool
		fetchAgain bool
	}{
		{"last task: the failed stage alone", "LastWorkflowTask", false, false},
		{"last task, after the worker was killed", "LastWorkflowTask", true, false},
		{"first task: all stages", "FirstWorkflowTask", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
			temporalCommand(t)
			worker := in.startWorker()
			in.rejectKey(1)
			id := in.deadLetter("1", failure.AuthDenied)
			before := in.calls(1)
			if tc.killWorker {
				if err := worker.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = worker.Wait()
			}
			in.reset(tc.kind, "--workflow-id", id)
			if tc.killWorker {
				in.startWorker()
			}
			if letter := in.waitForEnd(id); letter.ErrorClass != "" {
				t.Fatalf("the replay died of %s", letter.ErrorClass)
			}
			after := in.calls(1)
			if again := after.p4 > before.p4; again != tc.fetchAgain || after.model != before.model+1 || after.mails != 1 {
				t.Errorf("calls %+v before the reset and %+v after it", before, after)
			}
		})
	}
}

// The stock batch knows nothing of reviews: it resets every failed run there
// is, those of repaired reviews too. That must cost no model call and no mail.
func TestStockBatchIsSafe(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}, map[string]string{"b.go": faulty}))
	temporalCommand(t)
	in.disableBreaker()
	in.startWorker()
	in.rejectKey(3)
	repaired := in.deadLetter("1", failure.AuthDenied)
	in.reset("LastWorkflowTask", "--workflow-id", repaired)
	if got := in.waitForEnd(repaired).ErrorClass; got != failure.AuthDenied {
		t.Fatalf("the first replay died of %q", got)
	}
	dead := in.deadLetter("2", failure.AuthDenied)
	in.reset("LastWorkflowTask", "--workflow-id", repaired)
	if got := in.waitForEnd(repaired).ErrorClass; got != "" {
		t.Fatalf("the second replay died of %s", got)
	}
	const all, failed = `WorkflowType="ReviewChangelist"`, `ExecutionStatus="Failed"`
	waitFor(t, "the three failed runs in Temporal's list", func() bool { return in.countRuns(failed) == 3 })
	in.reset("LastWorkflowTask", "--query", failed, "--yes")
	waitFor(t, "the three resets", func() bool { return in.countRuns(all) == 7 && in.countRuns(all+` AND ExecutionStatus="Running"`) == 0 })
	if got := in.waitForEnd(dead).ErrorClass; got != "" {
		t.Errorf("the replay of what was dead died of %s", got)
	}
	if calls := in.model.Stats().Calls; calls != 5 || len(in.mails(1)) != 1 || len(in.mails(2)) != 1 {
		t.Errorf("%d model calls, %d and %d mails; want 5, and one mail for each review", calls, len(in.mails(1)), len(in.mails(2)))
	}
}

// count counts the runs that a query finds.
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

// A full restart renews what a replay of the stage would need, and only that.
func TestReplayOfExpiredArtifactAsksForFullRestart(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	temporalCommand(t)
	in.startWorker()
	in.rejectKey(1)
	id := in.deadLetter("1", failure.AuthDenied)
	expireArtifacts(t, in.database, review.NamespaceRedacted)
	in.reset("LastWorkflowTask", "--workflow-id", id)
	letter := in.waitForEnd(id)
	if letter.ErrorClass != failure.ArtifactExpired || !strings.Contains(letter.Hint, "restart from the first stage") {
		t.Fatalf("the replay left %+v, want ARTIFACT_EXPIRED and the hint to restart", letter)
	}
	if got := in.calls(1); got.model != 1 || got.mails != 0 {
		t.Errorf("%+v, want no call but that of the first run", got)
	}
	in.reset("FirstWorkflowTask", "--workflow-id", id)
	if letter := in.waitForEnd(id); letter.ErrorClass != "" || len(in.mails(1)) != 1 {
		t.Errorf("the full restart died of %q, and %d mails came", letter.ErrorClass, len(in.mails(1)))
	}
}

// Criticizer-processing 8.4: a dead letter is recorded even if Postgres was
// down when the stage failed, with the times of the failure.
func TestDeadLetterOutlivesAnOutageOfPostgres(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	begin, end := outageOf(t, in.database)
	begun := make(chan struct{})
	atModel := sync.OnceFunc(func() { begin(); close(begun) })
	in.beforeAnswer.Store(&atModel)
	in.startWorker()
	in.rejectKey(1)
	id := in.mustStart("1").WorkflowID
	<-begun
	waitFor(t, "a failed attempt to record the dead letter", func() bool { return in.attempts(id, "dead-letter") > 1 })
	end()
	if got := in.waitForEnd(id).ErrorClass; got != failure.AuthDenied {
		t.Fatalf("review died of %q", got)
	}
	var class string
	var later bool
	err := in.database.Conn(t).QueryRow(t.Context(),
		`select error_class, recorded_at > last_failure_at from criticizer.dead_letters where state = 'open'`).Scan(&class, &later)
	if err != nil || class != string(failure.AuthDenied) || !later {
		t.Errorf("recorded %q (%v), after the failure: %t; want AUTH_DENIED, after it", class, err, later)
	}
}

// attempts is the attempt that a pending activity is at, 0 if it is not pending.
func (in *installation) attempts(workflowID, activityID string) int32 {
	in.t.Helper()
	described, err := in.namespace.DescribeWorkflowExecution(in.t.Context(), workflowID, "")
	if err != nil {
		in.t.Fatal(err)
	}
	for _, a := range described.GetPendingActivities() {
		if a.GetActivityId() == activityID {
			return a.GetAttempt()
		}
	}
	return 0
}

// outageOf returns what keeps everybody out of a database, as if Postgres were
// down, and what ends that.
func outageOf(t *testing.T, d *storetest.Database) (begin, end func()) {
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
