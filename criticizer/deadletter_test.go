package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

const reason = "INC-42: key renewed"

// Triage, replay and verification on the command line (processing 8.5).
func TestReplayFromTheFailedStage(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	if out := s.must("deadletter", "list"); out != "no dead letters\n" {
		t.Errorf("an empty queue is listed as %q", out)
	}
	s.review(4711, errDenied)
	id := s.letterOf(4711)
	contains(t, s.must("deadletter", "list"), "ID", "CHANGELIST", id, "4711 v1", "llm", "AUTH_DENIED", "open")
	run := "https://ui.example.com/namespaces/" + s.runs.Name + "/workflows/review-p4-4711-v1/"
	ui := map[string]string{"CRITICIZER_TEMPORAL_UI_URL": "https://ui.example.com/"}
	contains(t, s.with(ui, "deadletter", "show", id).out, "in Temporal", run+s.open(4711).RunID)
	contains(t, s.with(ui, "status", "4711").out, "in Temporal", run)
	contains(t, s.must("deadletter", "show", id), "AUTH_DENIED in stage llm", "state", "open", "what to do", "renew the credential", "last error:", "model refused the key")
	before := s.digest()
	contains(t, s.must("deadletter", "replay", "--class", "AUTH_DENIED", "--stage", "llm", "--reason", reason, "--dry-run"),
		"AUTH_DENIED", id, "would be replayed: 1, skipped: 0; nothing was done")
	if after := s.digest(); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	contains(t, s.must("deadletter", "replay", id, "--reason", reason), "4711", "replayed")
	s.ended(4711)
	if f, r, m := s.world.Calls("Fetch"), s.world.Calls("Review"), s.world.Copies("alice@corp.test"); f != 1 || r != 2 || m != 1 {
		t.Errorf("%d fetches, %d model calls, %d mails, want 1, 2, 1", f, r, m)
	}
	contains(t, s.must("deadletter", "show", id), "resolved", "by olga@", reason, "replays", reason, "audit log:", "request replay", "replay")
	contains(t, s.must("status", "4711"), "changelist 4711, version 1: succeeded, findings, 1 finding", "run", "Completed",
		"alice@corp.test", "sent", "bob@corp.test", "sent",
		"dead letter "+id, "replays", "by olga@", reason)
	if out := s.must("deadletter", "list"); out != "no dead letters\n" {
		t.Errorf("after success the queue is\n%s", out)
	}
	if out := s.must("deadletter", "list", "--unexplained"); out != "no dead letters\n" {
		t.Errorf("unexplained are\n%s", out)
	}
	s.refuses(s.criticizer("deadletter", "replay", id, "--reason", reason), 1, "is resolved")
}

func TestFullRestartFetchesAgain(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	contains(t, s.must("deadletter", "replay", "--full", s.letterOf(4711), "--reason", reason), "replayed")
	s.ended(4711)
	if f, m := s.world.Calls("Fetch"), s.world.Copies("alice@corp.test"); f != 2 || m != 1 {
		t.Errorf("%d fetches and %d mails, want 2 and 1", f, m)
	}
	out := s.must("deadletter", "show", s.letterOf(4711))
	contains(t, out, "resolved", reason, "full restart")
	if strings.Contains(out, "UNEXPLAINED") {
		t.Errorf("what was asked for with a reason is unexplained:\n%s", out)
	}
}

// A replay that fails with the same non-retryable class is escalated, and the
// operator is paged (processing 8.5).
func TestReplayThatFailsAgainIsEscalated(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	first := s.letterOf(4711)
	s.world.Fail("Review", errDenied)
	s.must("deadletter", "replay", first, "--reason", reason)
	s.ended(4711)
	second := s.letterOf(4711)
	contains(t, s.must("deadletter", "list", "--escalated"), second, "AUTH_DENIED", "open", "escalated")
	contains(t, s.must("deadletter", "show", second), "page", "escalated: not sent yet")
	s.count(`CriticizerEscalated = true AND ExecutionStatus = "Failed"`, 1)
	s.refuses(s.criticizer("deadletter", "replay", first, "--reason", reason), 1, "failed again")
	contains(t, s.must("deadletter", "show", second), "what to do", "pass it to engineering")
	contains(t, s.must("deadletter", "replay", "--class", "AUTH_DENIED", "--reason", reason), "skipped", "is escalated", "replayed: 0, skipped: 1")
	s.refuses(s.criticizer("deadletter", "replay", second, "--reason", reason), 1, "--escalated --note ")
	s.refuses(s.criticizer("deadletter", "replay", second, "--escalated", "--reason", reason), 2, "--note TEXT")
	s.refuses(s.criticizer("deadletter", "replay", "--class", "AUTH_DENIED", "--escalated", "--note", "x", "--reason", reason), 2, "wants IDs")
	s.must("deadletter", "replay", second, "--escalated", "--note", "ENG-7: build 8", "--reason", "INC-42: the right key this time")
	contains(t, s.must("deadletter", "show", second), "annotate: ENG-7: build 8")
	s.ended(4711)
	contains(t, s.must("deadletter", "list", "--state", "all"), first, "resolved", second, "resolved", "escalated")
}

// A reset from the UI or by the temporal command works, but is listed as unexplained:
// it has no replay record (processing 8.5.3).
func TestStockResetIsListedAsUnexplained(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	s.review(4712, errDenied)
	l := s.open(4711)
	_, err := s.runs.reset(t.Context(), l, store.ReplayRequest{Reason: "Reset from the Web UI"})
	testkit.NoError(t, err)
	s.ended(4711)
	out := s.must("deadletter", "list", "--unexplained")
	contains(t, out, "4711", "resolved", "unexplained")
	if strings.Contains(out, "4712") {
		t.Errorf("a dead letter that was not reset is listed:\n%s", out)
	}
	contains(t, s.must("deadletter", "show", s.letterOf(4711)), "UNEXPLAINED", "Reset from the Web UI")
	contains(t, s.must("deadletter", "annotate", s.letterOf(4711), "--note", "INC-5: Ivan tried"), "noted, and its unexplained replay acknowledged")
	contains(t, s.must("deadletter", "show", s.letterOf(4711)), "acknowledged by olga@", "annotate: INC-5: Ivan tried")
	if out := s.must("deadletter", "list", "--unexplained"); out != "no dead letters\n" {
		t.Errorf("after the acknowledgement unexplained are\n%s", out)
	}
	_, err = s.runs.reset(t.Context(), s.open(4712), store.ReplayRequest{Reason: "INC-6: the key is right now"})
	testkit.NoError(t, err)
	s.ended(4712)
	if out := s.must("deadletter", "list", "--unexplained"); out != "no dead letters\n" {
		t.Errorf("a reset with a reason is unexplained:\n%s", out)
	}
}

// A replay cannot help while a recipient is refused for good.
func TestReplayOfARefusedRecipient(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.world.Fail("Send", failure.Errorf(failure.RecipientRejected, "no such mailbox"))
	run, err := s.runs.ExecuteWorkflow(t.Context(), contract.StartOptions(requestFor(4711)), workflows.ReviewChangelist, requestFor(4711))
	testkit.NoError(t, err)
	if err := run.Get(t.Context(), nil); err == nil {
		t.Fatal("nobody was refused")
	}
	id, alice := s.letterOf(4711), fmt.Sprint(s.deliveryOf(4711, "alice@corp.test"))
	before := s.digest()
	a := s.criticizer("deadletter", "replay", id, "--reason", reason)
	s.refuses(a, 1, "delivery "+alice+" was refused for good")
	contains(t, a.err, "criticizer delivery waive "+alice)
	contains(t, s.must("deadletter", "replay", "--class", "RECIPIENT_REJECTED", "--reason", reason, "--dry-run"), "would be replayed: 0, skipped: 1")
	contains(t, s.must("deadletter", "replay", "--class", "RECIPIENT_REJECTED", "--reason", reason), "skipped", "replayed: 0, skipped: 1")
	if after := s.digest(); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
	s.must("delivery", "waive", alice, "--reason", "INC-1: has left")
	s.must("deadletter", "replay", id, "--reason", reason)
	s.ended(4711)
	contains(t, s.must("status", "4711"), "succeeded")
}

// Twenty dead letters of three classes are settled by three commands.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	for cl := range review.Changelist(20) {
		s.review(cl+1, []error{errDenied, failure.Errorf(failure.SchemaInvalid, "no JSON"), failure.Errorf(failure.ContentPolicy, "refused")}[min(cl/8, 2)])
	}
	before := s.digest()
	contains(t, s.must("deadletter", "resolve", "--class", "CONTENT_POLICY", "--reason", "INC-3: read by hand", "--dry-run"), "would be resolved: 4")
	if after := s.digest(); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	contains(t, s.must("deadletter", "resolve", "--class", "CONTENT_POLICY", "--reason", "INC-3: read by hand"), "resolved: 4, skipped: 0, failed: 0")
	contains(t, s.must("deadletter", "replay", "--class", "AUTH_DENIED", "--reason", reason), "replayed: 8, skipped: 0, failed: 0")
	var results []itemResult
	if err := json.Unmarshal([]byte(s.must("deadletter", "replay", "--stage", "llm", "--older-than", "1ms", "--reason", reason, "--json")), &results); err != nil || len(results) < 8 {
		t.Errorf("%+v, %v", results, err)
	}
	for cl := range review.Changelist(16) {
		s.ended(cl + 1)
	}
	if out := s.must("deadletter", "list"); out != "no dead letters\n" {
		t.Errorf("left are\n%s", out)
	}
	mixed := s.criticizer("deadletter", "resolve", s.letterOf(1), s.letterOf(20), "--reason", "again")
	if contains(t, mixed.out, "failed: 2"); mixed.status != 1 {
		t.Errorf("letters that are resolved: %+v", mixed)
	}
	checkRefusal(t, "no filter", s.criticizer("deadletter", "resolve", "--reason", "x"), 2, "neither IDs nor filters")
}

// open is the open dead letter of a changelist.
func (s *environment) open(cl review.Changelist) store.DeadLetter {
	s.t.Helper()
	letters, err := s.database.Open(s.t, store.RoleOperator).DeadLetters(s.t.Context(),
		store.DeadLetterFilter{Changelist: cl, States: []store.DeadLetterState{store.DeadLetterOpen}})
	if err != nil || len(letters) != 1 {
		s.t.Fatalf("open letters of %d are %+v (%v)", cl, letters, err)
	}
	return letters[0]
}

// A replay of a class skips dead letters whose run was reset by other means.
func TestReplayOfAClass(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	for cl := review.Changelist(1); cl <= 3; cl++ {
		s.review(cl, errDenied)
	}
	s.review(4, failure.Errorf(failure.SchemaInvalid, "answer is no JSON"))
	s.must("deadletter", "resolve", s.letterOf(1), "--reason", "INC-42: reviewed by hand")
	taken := s.open(2) // reset by other means; its new run has not started yet
	s.stop()
	if _, err := s.runs.reset(t.Context(), taken, store.ReplayRequest{ID: 1, Reason: "from the UI"}); err != nil {
		t.Fatal(err)
	}
	contains(t, s.must("deadletter", "replay", "--class", "AUTH_DENIED", "--reason", reason),
		"2 v1", "skipped", "was reset by other means", "3 v1", "replayed")
	s.work()
	s.ended(2)
	s.ended(3)
	if n := s.world.Copies("alice@corp.test"); n != 2 {
		t.Errorf("%d mails, want one each for changelists 2 and 3", n)
	}
	if out := s.must("deadletter", "replay", "--class", "AUTH_DENIED", "--reason", reason); out != "nothing to do\nreplayed: 0, skipped: 0, failed: 0\n" {
		t.Errorf("a second bulk replay says %q", out)
	}
	contains(t, s.must("deadletter", "list"), "SCHEMA_INVALID", "open")
}

// A crash between the request and the reset, or between the reset and its
// confirmation, is completed by the next replay of the same dead letter.
func TestInterruptedReplayIsCompleted(t *testing.T) {
	t.Parallel()
	for name, resetHappened := range map[string]bool{"before the reset": false, "after the reset": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnvironment(t)
			s.review(4711, errDenied)
			s.stop()
			l := s.open(4711)
			request, err := s.database.Open(t, store.RoleOperator).RequestReplay(t.Context(),
				store.ReplayRequest{DeadLetterID: l.ID, Who: "ivan@desk", Reason: "INC-41", Full: true})
			testkit.NoError(t, err)
			run := ""
			if resetHappened {
				if run, err = s.runs.reset(t.Context(), l, request); err != nil {
					t.Fatal(err)
				}
			}
			contains(t, s.must("deadletter", "list"), "replaying", "interrupted")
			contains(t, s.must("deadletter", "resolve", "--class", "AUTH_DENIED", "--reason", reason, "--dry-run"), "would be resolved: 1")
			contains(t, s.must("deadletter", "replay", s.letterOf(4711), "--reason", reason), "replayed", run)
			contains(t, s.must("deadletter", "resolve", "--class", "AUTH_DENIED", "--reason", reason), "skipped", "is being replayed", "resolved: 0, skipped: 1")
			contains(t, s.must("deadletter", "resolve", s.letterOf(4711), "--reason", reason, "--dry-run"), "would be resolved: 1")
			s.refuses(s.criticizer("deadletter", "replay", s.letterOf(4711), "--reason", reason), 1, "is being replayed already")
			s.work()
			s.ended(4711)
			s.count(`CriticizerChangelist = 4711`, 2) // the dead run and one replay
			resolvedBy := map[bool]string{true: "by ivan@desk: INC-41", false: "by olga@"}[resetHappened]
			contains(t, s.must("deadletter", "show", s.letterOf(4711)), "resolved", resolvedBy)
		})
	}
}

// Of two operators who replay the same letter at once, one does.
func TestReplaysAtOnceResetOnce(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	s.stop()
	id := s.letterOf(4711)
	answers := make([]answer, 4)
	var operators sync.WaitGroup
	for i := range answers {
		operators.Go(func() { answers[i] = s.criticizer("deadletter", "replay", id, "--reason", reason) })
	}
	operators.Wait()
	done := 0
	for _, a := range answers {
		if a.status == 0 {
			done++
			continue
		}
		s.refuses(a, 1, "being replayed")
	}
	if done != 1 {
		t.Errorf("%d of %d say they did it: %+v", done, len(answers), answers)
	}
	s.work()
	s.ended(4711)
	s.count(`CriticizerChangelist = 4711`, 2) // the dead run and one replay
}

// A reset that Temporal rejects leaves the dead letter open.
func TestReplayThatTemporalRejects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		known      bool
		want, hint string
	}{
		"a run without a workflow task":             {true, "was not replayed", "it is open again"},
		"a workflow that Temporal does not know of": {false, "not known to Temporal", "criticizer-starter change-commit --review-version 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnvironment(t)
			req, run := requestFor(4711), "0199a1b2-0000-7000-8000-000000000000"
			if tc.known {
				s.stop()
				begun, err := s.runs.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: req.Key, TaskQueue: "no-worker"}, "Nothing")
				testkit.NoError(t, err)
				run = begun.GetRunID()
				testkit.NoError(t, s.runs.TerminateWorkflow(t.Context(), req.Key, run, "tested"))
			}
			at := time.Now()
			_, err := s.database.Open(t, store.RoleBookkeeping).RecordDeadLetter(t.Context(), req, run,
				failure.DeadLetter{ErrorClass: failure.AuthDenied, Stage: "llm", FirstFailureAt: at, LastFailureAt: at})
			testkit.NoError(t, err)
			a := s.criticizer("deadletter", "replay", s.letterOf(4711), "--reason", reason)
			s.refuses(a, 1, tc.want)
			contains(t, a.err, "hint: ", tc.hint)
			contains(t, s.must("deadletter", "list"), "open")
			if out := s.must("deadletter", "list"); strings.Contains(out, "interrupted") {
				t.Errorf("the request was not withdrawn:\n%s", out)
			}
		})
	}
}

// A dry run does not count a dead letter as skipped if its state cannot be read.
func TestDryRunReportsAnError(t *testing.T) {
	t.Parallel()
	lost := failure.Errorf(failure.NetworkUnreachable, "connection lost")
	letters := bulk[store.DeadLetter]{dryRun: true}
	err := letters.run(&app{stdout: io.Discard, stderr: io.Discard}, make([]store.DeadLetter, 1), "replayed", func(store.DeadLetter) error { return lost }, nil)
	if !errors.Is(err, lost) {
		t.Errorf("the error is %v, want %v", err, lost)
	}
}

func TestResolveAndAnnotate(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	id := s.letterOf(4711)
	contains(t, s.must("deadletter", "annotate", id, "--note", "asked the provider"), "noted")
	contains(t, s.must("deadletter", "resolve", "--reason", "INC-42: reviewed by hand", id), "resolved")
	contains(t, s.must("deadletter", "show", id), "resolved", "by olga@", "INC-42: reviewed by hand", "annotate: asked the provider")
	s.refuses(s.criticizer("deadletter", "resolve", id, "--reason", "again"), 1, "is resolved already")
	if n := s.world.Calls("Review"); n != 1 {
		t.Errorf("%d model calls, want that of the review only", n)
	}
}

// Invalid input results in a one-line error and a hint, and changes nothing.
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	id := s.letterOf(4711)
	before := s.digest()
	for name, tc := range map[string]struct {
		args   []string
		env    map[string]string
		status int
		want   string
	}{
		"an id that does not exist":         {args: []string{"deadletter", "replay", id, "999", "--reason", reason}, status: 1, want: "999 does not exist"},
		"an id that is none":                {args: []string{"deadletter", "replay", "all", "--reason", reason}, status: 2, want: `"all" is not the ID`},
		"an empty reason":                   {args: []string{"deadletter", "replay", id, "--reason", "  "}, status: 1, want: "--reason is empty"},
		"a reason with a secret":            {args: []string{"deadletter", "replay", id, "--reason", "the key is ghp_016C7vAbCdEfGhIjKlMnOpQrStUvWx0ab3QZ"}, status: 1, want: "seems to contain a secret"},
		"a class that does not exist":       {args: []string{"deadletter", "replay", "--class", "NOPE", "--reason", reason}, status: 2, want: `--class "NOPE": want`},
		"a stage that does not exist":       {args: []string{"deadletter", "list", "--stage", "lunch"}, status: 2, want: `--stage "lunch": want`},
		"a state that does not exist":       {args: []string{"deadletter", "list", "--state", "sad"}, status: 2, want: `--state "sad": want`},
		"ids and a class":                   {args: []string{"deadletter", "replay", id, "--class", "AUTH_DENIED", "--reason", reason}, status: 2, want: "not both"},
		"neither ids nor a class":           {args: []string{"deadletter", "replay", "--reason", reason}, status: 2, want: "neither IDs nor filters: name each dead letter by its ID, or choose by --class, --stage,"},
		"a flag that does not exist":        {args: []string{"deadletter", "list", "-colour"}, status: 2, want: "colour"},
		"an action that does not exist":     {args: []string{"deadletter", "bury", id}, status: 2, want: "bury"},
		"a command that does not exist":     {args: []string{"bury"}, status: 2, want: "bury"},
		"no command":                        {status: 2, want: "wants a command"},
		"an unknown letter to show":         {args: []string{"deadletter", "show", "999"}, status: 1, want: "999 does not exist"},
		"an unknown letter to resolve":      {args: []string{"deadletter", "resolve", "999", "--reason", "x"}, status: 1, want: "999 does not exist"},
		"an unknown letter to annotate":     {args: []string{"deadletter", "annotate", "999", "--note", "x"}, status: 1, want: "999 does not exist"},
		"an empty note":                     {args: []string{"deadletter", "annotate", id, "--note", ""}, status: 1, want: "--note is empty"},
		"a changelist without a review":     {args: []string{"status", "1"}, status: 1, want: "changelist 1 has no review"},
		"a changelist that is not a number": {args: []string{"status", "head"}, status: 2, want: `"head"`},
		"Temporal is down": {
			args: []string{"deadletter", "replay", id, "--reason", reason}, env: map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"},
			status: 1, want: "reach Temporal at 127.0.0.1:1",
		},
		"Postgres is down": {
			args: []string{"deadletter", "replay", id, "--reason", reason}, env: map[string]string{"CRITICIZER_DATABASE_URL": "postgres://x@127.0.0.1:1/x"},
			status: 1, want: "connect to database",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			answer := s.with(tc.env, tc.args...)
			s.refuses(answer, tc.status, tc.want)
			if answer.out != "" {
				t.Errorf("it printed %q", answer.out)
			}
			if after := s.digest(); after != before {
				t.Errorf("it changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	if out := s.must("deadletter", "list", "-o", "json"); out != "[]\n" {
		t.Errorf("an empty queue is %q", out)
	}
	s.review(4711, errDenied)
	var listed []struct {
		ID         int64  `json:"id"`
		ErrorClass string `json:"error_class"`
		State      string `json:"state"`
	}
	if err := json.Unmarshal([]byte(s.must("deadletter", "list", "--json")), &listed); err != nil || len(listed) != 1 || listed[0].ErrorClass != "AUTH_DENIED" || listed[0].State != "open" {
		t.Errorf("listed %+v (%v)", listed, err)
	}
	contains(t, s.must("deadletter", "list", "-o", "wide"), "WORKFLOW", "RUN", "review-p4-4711-v1", s.open(4711).RunID)
	var views []struct {
		State string `json:"state"`
		Run   struct {
			Status string `json:"status"`
		} `json:"run"`
		DeadLetters []struct {
			ErrorClass string `json:"error_class"`
		} `json:"dead_letters"`
	}
	if err := json.Unmarshal([]byte(s.must("status", "4711", "--json")), &views); err != nil || len(views) != 1 {
		t.Fatalf("views are %+v (%v)", views, err)
	}
	view := views[0]
	if view.State != "retryable_failed" || view.Run.Status != "Failed" || len(view.DeadLetters) != 1 || view.DeadLetters[0].ErrorClass != "AUTH_DENIED" {
		t.Errorf("got %+v", view)
	}
}
