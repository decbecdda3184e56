package workflows_test

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

var request = review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}

// bench is a test environment with the real activities, so that the mapping of failures is
// tested too, over a database and stand-ins of the outside.
type bench struct {
	*testsuite.TestWorkflowEnvironment
	fakes *activitiestest.Fakes
	db    activitiestest.Database
	// standIn is set if the model is a simulation.
	standIn bool
}

func newBench(t *testing.T) bench {
	t.Helper()
	w := activitiestest.New()
	return bench{fakes: w, db: w.Open(t)}.again(t)
}

// again returns a new environment over the same fakes and database.
func (b bench) again(t *testing.T) bench {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(discard))
	b.TestWorkflowEnvironment = suite.NewTestWorkflowEnvironment()
	b.SetTestTimeout(30 * time.Second)
	b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: func(s string) string { return s }},
	}})
	b.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: request.Key})
	b.RegisterWorkflow(workflows.ReviewChangelist)
	b.RegisterWorkflow(workflows.SettleShelf)
	for _, a := range activitiesOver(t, b.fakes, b.db) {
		if c, ok := a.(*activities.Model); ok {
			c.StandIn = b.standIn
		}
		b.RegisterActivity(a)
	}
	return b
}

// activitiesOver returns the activities of all stages.
func activitiesOver(t *testing.T, w *activitiestest.Fakes, db activitiestest.Database) []any {
	t.Helper()
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, 16 bytes or more")})
	testkit.NoError(t, err)
	notifying := &activities.Notifier{
		Log: discard, Reports: db.Artifacts(t, review.NamespaceReport), Outbox: db, Post: w,
		Policy: activities.RecipientPolicy{CleanTo: activities.CleanToAuthor, Max: 10},
	}
	raw, redacted, report := db.Artifacts(t, review.NamespaceRaw), db.Artifacts(t, review.NamespaceRedacted), db.Artifacts(t, review.NamespaceReport)
	return []any{
		&activities.Bookkeeper{Jobs: db, Resets: w, Shelves: db},
		&activities.Fetcher{Changes: w, Recipients: db, Contents: db, Raw: raw},
		&activities.Redactor{Raw: raw, Redacted: redacted, Pipeline: pipeline},
		&activities.Model{Redacted: redacted, Reports: report, Answers: db.Artifacts(t, review.NamespaceAnswer), Accounts: db, Reviewer: w, Pipeline: pipeline},
		notifying,
		&activities.Poster{Notifier: notifying},
	}
}

func (b bench) review(t *testing.T) (review.Result, error) {
	t.Helper()
	b.ExecuteWorkflow(workflows.ReviewChangelist, request)
	if err := b.GetWorkflowError(); err != nil {
		return review.Result{}, err
	}
	var result review.Result
	testkit.NoError(t, b.GetWorkflowResult(&result))
	return result, nil
}

func jobOf(t *testing.T, db activitiestest.Database, key string) review.Job {
	t.Helper()
	job, err := db.Job(t.Context(), key)
	testkit.NoError(t, err)
	return job
}

// The program that waits for the review reports that no model read the change.
func TestResultOfAStandIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standIn = true
	b = b.again(t)
	b.fakes.SetDraft(review.Draft{Coverage: activitiestest.Read("//depot/a.go"), Record: review.Record{Usage: review.Usage{Calls: 1, PromptTokens: 100}}})
	result, err := b.review(t)
	if err != nil || !result.StandIn {
		t.Errorf("result = %+v, %v", result, err)
	}
}

// A review runs each stage once. A second run of the same version returns the earlier result
// (notification 6.2).
func TestReviewRunsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	result, err := b.review(t)
	testkit.NoError(t, err)
	if result.Job.State != review.JobSucceeded || result.Job.Outcome != review.OutcomeFindings || result.Job.Findings != 1 {
		t.Errorf("result = %+v", result)
	}
	again, err := b.again(t).review(t)
	testkit.NoError(t, err)
	if !again.Duplicate || again.Job.Outcome != review.OutcomeFindings {
		t.Errorf("second review = %+v", again)
	}
	for _, op := range []string{"Fetch", "Review", "FinishJob"} {
		if n := b.fakes.Calls(op); n != 1 {
			t.Errorf("%s ran %d times, want once", op, n)
		}
	}
	for _, to := range []string{"alice@corp.test", "bob@corp.test"} {
		if n := b.fakes.Copies(to); n != 1 {
			t.Errorf("%s got %d copies, want 1", to, n)
		}
	}
}

// A skipped change is neither stored nor reviewed, and causes no mail.
func TestSkippedChangeEndsAfterFetch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fakes.SetChange(review.Change{Number: 4711, User: "alice", SkippedBy: review.SkipRuleUser})
	result, err := b.review(t)
	testkit.NoError(t, err)
	if j := result.Job; j.State != review.JobSucceeded || j.Outcome != review.OutcomeNotReviewed || j.SkippedBy != review.SkipRuleUser {
		t.Errorf("job = %+v", j)
	}
	for _, op := range []string{"Put raw", "SaveRecipients", "Review", "Send", "FinishJob"} {
		if n := b.fakes.Calls(op); n != 0 {
			t.Errorf("%s ran %d times", op, n)
		}
	}
	if shown := b.shown(t); !strings.Contains(shown, "**done: not_reviewed, skipped: "+string(review.SkipRuleUser)+"**") {
		t.Errorf("the UI shows %q", shown)
	}
}

// shown returns the current details of the review in the Temporal UI.
func (b bench) shown(t *testing.T) string {
	t.Helper()
	var shown sdkpb.WorkflowMetadata
	value, err := b.QueryWorkflow("__temporal_workflow_metadata")
	testkit.NoError(t, err)
	testkit.NoError(t, value.Get(&shown))
	return shown.GetCurrentDetails()
}

// onShelf lets the change be one that was reviewed on the shelf as changelist cl.
func onShelf(t *testing.T, db activitiestest.Database, cl review.Changelist) {
	t.Helper()
	db.Shelve(t, cl, db.Keep(t, review.Report{
		Changelist: cl, Version: 1, Shelved: true, Outcome: review.OutcomeFindings, Coverage: activitiestest.Read("//depot/a.go"), ReviewedAt: "2026-01-02T03:04:05Z",
		Findings: []review.Finding{{Path: "//depot/a.go", Title: "as on the shelf"}},
	}))
}

// The review has the version of its job, which another review of the change decided.
func TestReviewHasTheVersionOfItsJob(t *testing.T) {
	t.Parallel()
	for decision, version := range map[review.Decision]review.Version{review.DecisionRun: 2, review.DecisionDuplicate: 1} {
		b := newBench(t)
		b.OnActivity("OpenJob", mock.Anything, mock.Anything, mock.Anything).Return(review.OpenResult{
			Decision: decision, Job: review.Job{ID: 1, Key: request.Key, Changelist: 4711, Version: 2, State: review.JobSucceeded},
		}, nil)
		_, _ = b.review(t)
		if shown := b.shown(t); !strings.Contains(shown, fmt.Sprintf("review version %d:", version)) {
			t.Errorf("with decision %s the UI shows %q, want version %d", decision, shown, version)
		}
	}
}

// A submit of a reviewed shelf is not reviewed again, and its recipients are notified.
func TestSubmitOfReviewedShelf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	onShelf(t, b.db, 4700)
	result, err := b.review(t)
	testkit.NoError(t, err)
	if result.Job.Outcome != review.OutcomeFindings || result.Job.Findings != 1 || b.fakes.Calls("Review") != 0 {
		t.Errorf("job = %+v after %d model calls", result.Job, b.fakes.Calls("Review"))
	}
	mails := b.fakes.Mails()
	if len(mails) != 2 {
		t.Fatalf("%d mails", len(mails))
	}
	if m := mails[0]; !m.AsShelved || m.Shelved || m.Changelist != 4711 || m.Version != 1 || m.Earlier != 1 || m.EarlierOf != 4700 {
		t.Errorf("mailed was %+v", m)
	}
}

func TestSubmitOfShelfWhoseReportHasExpired(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.db.Shelve(t, 4700, "report:gone")
	if _, err := b.review(t); err != nil || b.fakes.Calls("Review") != 1 {
		t.Errorf("ended with %v after %d model calls", err, b.fakes.Calls("Review"))
	}
}

// A stage has five attempts, the first included, whatever the stages before used
// (processing 8.3).
func TestStageBudgetIsFiveAttempts(t *testing.T) {
	t.Parallel()
	down := failure.Errorf(failure.UpstreamUnavailable, "model is down")
	for _, tc := range []struct {
		name       string
		failures   map[string]int // op: failed attempts
		deadLetter failure.Class  // empty: the review succeeds
		reviews    int
	}{
		{"four failures are survived", map[string]int{"Review": 4}, "", 5},
		{"the fifth is the last", map[string]int{"Review": 5}, failure.UpstreamUnavailable, 5},
		{"redact and llm share the budget", map[string]int{"Get raw": 2, "Review": 3}, failure.UpstreamUnavailable, 3},
		{"shared failures below the budget are survived", map[string]int{"Get raw": 2, "Review": 2}, "", 3},
		{"failures of fetch cost the model stage nothing", map[string]int{"Fetch": 4, "Review": 4}, "", 5},
		{"failures of redact cost stage notify nothing", map[string]int{"Get raw": 4, "PrepareDeliveries": 4}, "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for op, n := range tc.failures {
				for range n {
					b.fakes.Fail(op, down)
				}
			}
			_, err := b.review(t)
			if got := classOf(err); got != tc.deadLetter {
				t.Fatalf("review ended with class %q (%v), want %q", got, err, tc.deadLetter)
			}
			if n := b.fakes.Calls("Review"); n != tc.reviews {
				t.Errorf("model was called %d times, want %d", n, tc.reviews)
			}
		})
	}
}

// A non-retryable failure ends the stage at once (processing 8.1) (processing 8.2.3).
func TestNonRetryableFailureIsTriedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fakes.Fail("Review",
		failure.Errorf(failure.RateLimited, "model is busy"),
		failure.Errorf(failure.AuthDenied, "model refused the key"))
	_, err := b.review(t)
	if classOf(err) != failure.AuthDenied || b.fakes.Calls("Review") != 2 {
		t.Fatalf("ended with %v after %d calls, want AUTH_DENIED after 2", err, b.fakes.Calls("Review"))
	}
}

// The workflow's failure carries the dead letter, which names its payloads by truncated
// references (processing 8.4).
func TestDeadLetterIsInTheFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fakes.Fail("Review", &failure.Error{Class: failure.AuthDenied, Err: errors.New("key refused"), Upstream: "401", RequestID: "req-1"})
	_, err := b.review(t)
	deadLetter := deadLetterIn(t, err)
	truncated := regexp.MustCompile(`^(raw|redacted):[0-9a-f]{12}$`)
	raw, redacted := deadLetter.SanitizedContext["raw"], deadLetter.SanitizedContext["redacted"]
	if !truncated.MatchString(raw) || !truncated.MatchString(redacted) {
		t.Errorf("references %q and %q, want 12 digits", raw, redacted)
	}
	want := failure.DeadLetter{
		ErrorClass: failure.AuthDenied, Stage: "llm", LastStack: "review of changelist 4711: key refused", Attempts: 1,
		SanitizedContext: map[string]string{
			"activity": "llm", "attempts": "1", "changelist": "4711", "not_notified": "", "raw": raw,
			"redacted": redacted, "report": "", "request_id": "req-1", "review_version": "1", "stage": "llm", "upstream": "401",
		},
		FirstFailureAt: deadLetter.FirstFailureAt, LastFailureAt: deadLetter.LastFailureAt, Hint: failure.AuthDenied.Describe().Hint,
	}
	if !reflect.DeepEqual(deadLetter, want) || deadLetter.FirstFailureAt.IsZero() || deadLetter.LastFailureAt.Before(deadLetter.FirstFailureAt) {
		t.Errorf("dead letter is\n%+v, want\n%+v", deadLetter, want)
	}
	if jobOf(t, b.db, request.Key).State != review.JobRetryableFailed || b.db.Letters(t) != 1 {
		t.Errorf("job %s with %d letters", jobOf(t, b.db, request.Key).State, b.db.Letters(t))
	}
}

// Each class ends the stage with its own dead letter: at once, or when the attempts are spent
// (processing 8.1). An attempt of a worker that stops is not a failure.
func TestEveryClassIsDeadLettered(t *testing.T) {
	t.Parallel()
	for _, d := range failure.Descriptions() {
		if d.Class == failure.WorkerStopped {
			continue
		}
		t.Run(string(d.Class), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for range failure.AttemptBudget {
				b.fakes.Fail("Fetch", failure.Errorf(d.Class, "as it fails"))
			}
			_, err := b.review(t)
			deadLetter, attempts := deadLetterIn(t, err), 1
			if d.Retryable {
				attempts = failure.AttemptBudget
			}
			if deadLetter.ErrorClass != d.Class || deadLetter.Stage != "fetch" || deadLetter.Attempts != attempts || deadLetter.Hint != d.Hint || b.fakes.Calls("Fetch") != attempts {
				t.Errorf("dead letter %+v after %d attempts, want class %s after %d with hint %q", deadLetter, b.fakes.Calls("Fetch"), d.Class, attempts, d.Hint)
			}
			if jobOf(t, b.db, request.Key).State != review.JobRetryableFailed || b.db.Letters(t) != 1 || b.fakes.Calls("Review") != 0 {
				t.Errorf("job %s, %d letters, %d model calls", jobOf(t, b.db, request.Key).State, b.db.Letters(t), b.fakes.Calls("Review"))
			}
		})
	}
}

func TestDeadLetterIsRecordedAfterADatabaseOutage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fakes.Fail("Fetch", failure.Errorf(failure.NotFound, "no such changelist"))
	for range 8 {
		b.fakes.Fail("RecordDeadLetter", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
	}
	_, err := b.review(t)
	if classOf(err) != failure.NotFound || b.db.Letters(t) != 1 {
		t.Fatalf("ended with %v and %d letters", err, b.db.Letters(t))
	}
}

func TestInvalidRequestIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ExecuteWorkflow(workflows.ReviewChangelist, review.Request{Changelist: 1, Key: "k"})
	if classOf(b.GetWorkflowError()) != failure.InputInvalid || b.fakes.Calls("OpenJob") != 0 || b.db.Letters(t) != 0 {
		t.Fatalf("ended with %v after %d opened jobs", b.GetWorkflowError(), b.fakes.Calls("OpenJob"))
	}
}

// A review under another workflow ID than its key could not be replayed: its dead letter
// names the key.
func TestOtherWorkflowIDIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "started-by-hand"})
	_, err := b.review(t)
	if classOf(err) != failure.InputInvalid || b.fakes.Calls("OpenJob") != 0 || b.db.Letters(t) != 0 {
		t.Fatalf("ended with %v after %d opened jobs", err, b.fakes.Calls("OpenJob"))
	}
	for _, want := range []string{`"started-by-hand"`, `"review-p4-4711-v1"`, "criticizer-starter change-commit 4711"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// A refused request leaves a dead letter, and so does a replay that is refused again, which
// is escalated (processing 8.1) (processing 8.5).
func TestRefusedRequestIsDeadLettered(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	newer := request
	newer.Version, newer.Key = 2, "review-p4-4711-v2"
	testkit.NoError(t, c.start(t, newer).Get(t.Context(), nil))
	refused := c.review(t)
	if deadLetter := deadLetterIn(t, refused); deadLetter.ErrorClass != failure.InputInvalid || deadLetter.Stage != "fetch" || deadLetter.Attempts != 1 || c.db.Letters(t) != 1 {
		t.Errorf("%d dead letters, the failure has %+v", c.db.Letters(t), deadLetter)
	}
	c.keep(t, "refused")
	_, again := c.reset(t)
	if deadLetterIn(t, again); c.db.Letters(t) != 2 || c.fakes.Calls("Fetch") != 1 || !c.escalated(t) {
		t.Errorf("the replay left %d dead letters in all, escalated %t, after %d readings of the change", c.db.Letters(t), c.escalated(t), c.fakes.Calls("Fetch"))
	}
	var replays int
	c.db.Scan(t, `select count(*) from criticizer.replays where reason = 'the model is back'`, nil, &replays)
	if replays != 1 {
		t.Errorf("%d records of the replay", replays)
	}
	c.keep(t, "refused_again")
}

func TestCancellationReachesTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fakes.Fail("Fetch", &failure.Error{Class: failure.ServerBusy, Err: errors.New("busy"), RetryAfter: time.Minute})
	b.RegisterDelayedCallback(b.CancelWorkflow, 30*time.Second)
	if _, err := b.review(t); !temporal.IsCanceledError(err) {
		t.Fatalf("ended with %v, want canceled", err)
	}
	if jobOf(t, b.db, request.Key).State != review.JobCanceled {
		t.Errorf("job is %s", jobOf(t, b.db, request.Key).State)
	}
}

func classOf(err error) failure.Class {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return ""
	}
	return failure.Class(app.Type())
}

var discard = slog.New(slog.DiscardHandler)
