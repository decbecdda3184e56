package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
)

// TestEveryClassIsReachable provokes each class of failure.Descriptions at the external
// system that causes it. The interceptor must report the class and its retryability to
// Temporal (processing 8.1).
func TestEveryClassIsReachable(t *testing.T) {
	t.Parallel()
	provoke := map[failure.Class]func(*testing.T) error{
		failure.NetworkTimeout:      modelError(llmsim.Hang),
		failure.NetworkUnreachable:  p4Error(`{"fault":"refused"}`),
		failure.UpstreamUnavailable: modelError(llmsim.Unavailable),
		failure.DatabaseUnavailable: terminatedSession,
		failure.ReplicaBehind:       p4Error(`{"fault":"lag","for":"1h"}`),
		failure.AttemptTimeout:      heartbeatTimeout,
		failure.WorkerStopped:       stoppedWorker,
		failure.RateLimited:         modelError(llmsim.RateLimit),
		failure.ServerBusy:          p4Error(`{"fault":"message","id":"MsgServer::TooManyCommands"}`),
		failure.UpstreamInternal:    modelError(llmsim.Internal),
		failure.WriteConflict:       writeConflict,
		failure.DeliveryAmbiguous:   mailError(inbox.Fault{At: inbox.AtKept}),
		failure.SchemaInvalid:       modelError(llmsim.NotJSON),
		failure.PromptTruncated:     unreadPrompt,
		failure.EndpointRefused:     modelError(llmsim.BadRequest),
		failure.InputInvalid:        changelistError(12),
		failure.TooLarge:            p4Error(`{"fault":"message","id":"MsgDb::MaxResults"}`),
		failure.AuthDenied:          modelError(llmsim.InvalidKey),
		failure.PermissionDenied:    deniedSchema,
		failure.QuotaExhausted:      modelError(llmsim.InsufficientQuota),
		failure.NotFound:            changelistError(11),
		failure.ArtifactExpired:     expiredArtifact,
		failure.ArtifactForeign:     foreignArtifact,
		failure.ContentPolicy:       modelError(llmsim.Refusal),
		failure.PathNotAllowed:      changedRules,
		failure.RedactionBlocked:    tamperedChange,
		failure.RedactionOutdated:   outdatedChange,
		failure.RecipientRejected:   mailError(inbox.Fault{At: inbox.AtRcpt, Code: 550, Enhanced: [3]int{5, 1, 1}}),
		failure.ConfigInvalid:       p4Error(`{"fault":"trust"}`),
		failure.ArtifactUnreadable:  testedIn("../rewrite/activities/rewriting_test.go", "TestTextThatCannotBeDecrypted", failure.ArtifactUnreadable),
		failure.InvariantViolated:   endlessArtifact,
		failure.AdapterUnsupported:  testedIn("../rewrite/provider/batch_test.go", "TestProvidersWithoutBatches", failure.AdapterUnsupported),
		failure.Unknown:             p4Error(`{"fault":"message","text":"Odd.","severity":3,"generic":99}`),
	}
	for _, d := range failure.Descriptions() {
		t.Run(string(d.Class), func(t *testing.T) {
			t.Parallel()
			if provoke[d.Class] == nil {
				t.Fatal("this test does not provoke the class: add how an external system does")
			}
			err := provoke[d.Class](t)
			reported := attempt(t, nil, func(context.Context) error { return err })
			if reported.Type() != string(d.Class) || reported.NonRetryable() == d.Retryable {
				t.Errorf("%v: reported as %s, non-retryable %t", err, reported.Type(), reported.NonRetryable())
			}
		})
	}
}

// attempt runs a failing activity once and returns the error that the interceptor
// reports to Temporal. If stop is closed, the worker is stopping.
func attempt(t *testing.T, stop chan struct{}, act func(context.Context) error) *temporal.ApplicationError {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(discard))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: func(s string) string { return s }, Grace: time.Millisecond},
	}})
	env.SetWorkerStopChannel(stop)
	env.RegisterActivity(act)
	_, err := env.ExecuteActivity(act)
	reported, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		t.Fatalf("the activity ended with %v, not with an application error", err)
	}
	return reported
}

// stoppedWorker returns the error of an attempt that outlasts the worker's stop grace.
func stoppedWorker(t *testing.T) error {
	t.Helper()
	stop := make(chan struct{})
	close(stop)
	reported := attempt(t, stop, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	return failure.New(failure.Class(reported.Type()), reported)
}

// p4Error returns the error of a fetch while p4sim has the fault.
func p4Error(fault string) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		return fetchError(t, newDepot(t, map[string]string{"a.go": clean}), fault, 1)
	}
}

func fetchError(t *testing.T, depot, fault string, cl review.Changelist) error {
	t.Helper()
	_, err := newChanges(t, depot, fault, nil, nil).Read(t.Context(), cl, review.ReadOptions{})
	return err
}

// newChanges returns the adapter of a depot that p4sim serves with a fault.
func newChanges(t *testing.T, depot, fault string, embargoed, rules []string) *p4.ChangeFetcher {
	t.Helper()
	dir := t.TempDir()
	command := filepath.Join(dir, "p4")
	writeP4(t, command, binDir, "P4SIM_DEPOT="+depot, "P4SIM_STATE="+dir, "P4SIM_FAULT="+fault)
	cfg := config.Default[p4.Config]()
	cfg.Command, cfg.Port, cfg.User, cfg.StateDir = command, "ssl:p4sim:1666", "criticizer", filepath.Join(dir, "home")
	cfg.Allowed, cfg.Embargoed, cfg.Rules = []string{"//depot/..."}, embargoed, rules
	changes, err := p4.New(discard, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// changedRules returns the error of reading a rule file outside of the allow list. The
// adapter refuses such a configuration when it is made, so that only a bug reaches the
// second check: here, the list of rules is another one than was checked.
func changedRules(t *testing.T) error {
	t.Helper()
	rules := []string{"//depot/rules.yaml"}
	changes := newChanges(t, newDepot(t, map[string]string{"rules.yaml": "", "hidden/rules.yaml": ""}), "", []string{"//depot/hidden/..."}, rules)
	if _, err := changes.Rules(t.Context()); err != nil {
		t.Fatal(err)
	}
	rules[0] = "//depot/hidden/rules.yaml"
	_, err := changes.Rules(t.Context())
	return err
}

// changelistError returns the error of fetching a changelist from a depot where 10 and 13
// are submitted, 12 is pending and 11 does not exist.
func changelistError(cl review.Changelist) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		const depot = `-- user vera vera@example.com Vera Cruz --
-- change 10 user=vera client=ws --
First.
-- add text //depot/a.go --
a
-- change 12 user=vera client=ws pending --
On its way.
-- edit text //depot/a.go --
b
-- change 13 user=vera client=ws --
Second.
-- edit text //depot/a.go --
c
`
		file := filepath.Join(t.TempDir(), "depot.txtar")
		writeFile(t, file, 0o600, depot)
		return fetchError(t, file, "", cl)
	}
}

// modelError returns a function with the error of a review while the model has the fault.
func modelError(kind llmsim.FaultKind) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		return reviewError(t, llmsim.Fault{Kind: kind})
	}
}

// unreadPrompt returns the error of a review by a model that lists a check code of another prompt.
func unreadPrompt(t *testing.T) error {
	t.Helper()
	return reviewError(t, llmsim.Fault{Kind: llmsim.Scripted, Content: `{"codes":["00000000"],"findings":[]}`})
}

func reviewError(t *testing.T, fault llmsim.Fault) error {
	t.Helper()
	model := llmsim.New(llmsim.Config{})
	model.Inject(fault)
	endpoint := httptest.NewServer(model)
	t.Cleanup(endpoint.Close)
	pipeline := newPipeline(t)
	cfg := config.Default[llm.Config]()
	cfg.BaseURL, cfg.Timeout, cfg.Model = endpoint.URL+"/v1", 2*time.Second, "llmsim-1"
	reviewer, err := llm.New(discard, pipeline, cfg)
	if err != nil {
		t.Fatal(err)
	}
	change, err := pipeline.Change(review.Change{Number: 1, Files: []review.File{
		{DepotPath: "//depot/a.go", Action: review.ActionAdd, Type: "text", Diff: "@@ -0,0 +1,1 @@\n+package a\n"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = reviewer.Review(t.Context(), change, review.Options{})
	return err
}

func newPipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key of this test, long enough")})
	if err != nil {
		t.Fatal(err)
	}
	return pipeline
}

// tamperedChange returns the error of unsealing a modified redacted change.
func tamperedChange(t *testing.T) error {
	t.Helper()
	pipeline := newPipeline(t)
	change, err := pipeline.Change(review.Change{Number: 1, Description: "harmless"})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := pipeline.Seal(change)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipeline.Unseal([]byte(strings.Replace(string(sealed), "harmless", "a secret", 1)))
	return err
}

// outdatedChange returns the error of stage llm for a change that stage redact has redacted
// under other rules.
func outdatedChange(t *testing.T) error {
	t.Helper()
	older, err := redaction.New(redaction.Config{Key: secret.New("a key of this test, long enough"), Emails: true})
	if err != nil {
		t.Fatal(err)
	}
	change, err := older.Change(review.Change{Number: 1, Description: "harmless"})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := older.Seal(change)
	if err != nil {
		t.Fatal(err)
	}
	req := review.Request{Changelist: 1, Version: 1, Key: "k"}
	redacted := activitiestest.New().Open(t).Artifacts(t, review.NamespaceRedacted)
	ref, err := redacted.Put(t.Context(), req.Owner(), sealed)
	if err != nil {
		t.Fatal(err)
	}
	stage := activities.Model{Redacted: redacted, Pipeline: newPipeline(t)}
	_, err = stage.LLM(t.Context(), activities.StageParams{Request: req, Input: ref})
	return err
}

// mailError returns the error of sending a report while the inbox has the fault.
func mailError(f inbox.Fault) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		box := openInbox(t, t.TempDir())
		box.Inject(f)
		text, _ := evidence.Generate()
		keys, err := evidence.New(text, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		cfg := mail.Config{Keys: keys, From: "criticizer@corp.test", Host: "127.0.0.1", Port: box.SMTPAddr().Port, TLS: mail.TLSNone}
		server, err := mail.NewSMTPProvider(discard, cfg)
		testkit.NoError(t, err)
		provider, err := mail.NewEvidencedProvider(server, mail.EvidenceConfig{InboxURL: box.URL()})
		testkit.NoError(t, err)
		postman, err := mail.New(discard, provider, cfg)
		if err != nil {
			t.Fatal(err)
		}
		report := review.Report{Changelist: 1, Version: 1, Outcome: review.OutcomeClean, SubmittedAt: "2026-01-02T03:04:05Z"}
		_, err = postman.Send(t.Context(), report, review.DeliveryKey{Changelist: 1, Version: 1, Recipient: "alice@corp.test"}, time.Now())
		return err
	}
}

// terminatedSession returns the store's error when Postgres terminates its session.
func terminatedSession(t *testing.T) error {
	t.Helper()
	d := storetest.New(t)
	db, admin := d.Open(t, store.RoleBookkeeping), d.Conn(t)
	if _, err := admin.Exec(t.Context(), `begin; lock table criticizer.jobs`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := db.Job(t.Context(), "any")
		ended <- err
	}()
	waitFor(t, "the session that waits for the lock", func() bool {
		var n int
		err := admin.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&n)
		return err == nil && n > 0
	})
	return <-ended
}

// writeConflict begins a delivery from a row that has changed meanwhile.
func writeConflict(t *testing.T) error {
	t.Helper()
	d := storetest.New(t)
	request := review.Request{Changelist: 1, Version: 1, ServerID: "p4", Key: "review-p4-1-v1"}
	if _, err := d.Open(t, store.RoleBookkeeping).OpenJob(t.Context(), request, "run"); err != nil {
		t.Fatal(err)
	}
	notify := d.Open(t, store.RoleNotify)
	rows, err := notify.PrepareDeliveries(t.Context(), 1, 1, []string{"alice@corp.test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notify.BeginDelivery(t.Context(), rows[0]); err != nil {
		t.Fatal(err)
	}
	_, err = notify.BeginDelivery(t.Context(), rows[0])
	return err
}

// deniedSchema has the role of the llm stage read unredacted data, to which it has no
// access (security 9.4.4).
func deniedSchema(t *testing.T) error {
	t.Helper()
	_, err := storetest.New(t).Open(t, store.RoleLLM).Blobs(review.NamespaceRaw).Blob(t.Context(), strings.Repeat("0", 64))
	return err
}

func expiredArtifact(t *testing.T) error {
	t.Helper()
	d := storetest.New(t)
	ref, err := artifacts(t, d, store.RoleFetch).Put(t.Context(), review.Owner{Changelist: 1, Version: 1}, []byte("a change"))
	if err != nil {
		t.Fatal(err)
	}
	expireArtifacts(t, d, review.NamespaceRaw)
	_, err = artifacts(t, d, store.RoleRedact).Get(t.Context(), review.Owner{Changelist: 1, Version: 1}, ref)
	return err
}

// foreignArtifact reads the artifact of another review, as only a Temporal writer asks.
func foreignArtifact(t *testing.T) error {
	t.Helper()
	d := storetest.New(t)
	ref, err := artifacts(t, d, store.RoleFetch).Put(t.Context(), review.Owner{Changelist: 1, Version: 1}, []byte("a change"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = artifacts(t, d, store.RoleRedact).Get(t.Context(), review.Owner{Changelist: 2, Version: 1}, ref)
	return err
}

// endlessArtifact stores an artifact for longer than allowed, which only a bug does.
func endlessArtifact(t *testing.T) error {
	t.Helper()
	return storetest.New(t).Open(t, store.RoleFetch).Blobs(review.NamespaceRaw).PutBlob(t.Context(), strings.Repeat("0", 64), []byte("x"), 1000*time.Hour)
}

// keyset encrypts the artifacts of this file.
var keyset, keysetErr = artifact.NewKeyset(artifact.KEK{})

// artifacts opens the raw artifacts in a role.
func artifacts(t *testing.T, d *storetest.Database, role store.Role) *artifact.Store {
	t.Helper()
	s, err := artifact.New(d.Open(t, role).Blobs(review.NamespaceRaw), artifact.Config{Namespace: review.NamespaceRaw, Keyset: keyset, TTL: time.Hour})
	if err := errors.Join(keysetErr, err); err != nil {
		t.Fatal(err)
	}
	return s
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

// heartbeatTimeout returns the error of a review whose fetch worker sent no heartbeat in
// any attempt. The interceptor never sees that error, so the workflow classifies it.
func heartbeatTimeout(t *testing.T) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(discard))
	env := suite.NewTestWorkflowEnvironment()
	world := activitiestest.New()
	env.RegisterActivity(&activities.Bookkeeper{Jobs: world.Open(t), Resets: world})
	env.RegisterActivityWithOptions(func(context.Context, activities.StageParams) (activities.FetchResult, error) {
		return activities.FetchResult{}, temporal.NewHeartbeatTimeoutError()
	}, activity.RegisterOptions{Name: "Fetch"})
	req := review.Request{Changelist: 1, Version: 1, ServerID: "p4", Key: "review-p4-1-v1"}
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: req.Key})
	env.ExecuteWorkflow(workflows.ReviewChangelist, req)
	dead, ok := errors.AsType[*temporal.ApplicationError](env.GetWorkflowError())
	if !ok {
		t.Fatalf("the review ended with %v, not dead-lettered", env.GetWorkflowError())
	}
	return failure.New(failure.Class(dead.Type()), dead)
}

// testedIn names the test that provokes a class that only a bug in an adapter causes.
func testedIn(file, test string, class failure.Class) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		if !strings.Contains(readFile(t, file), "func "+test+"(") {
			t.Errorf("%s is not in %s", test, file)
		}
		return failure.Errorf(class, "see %s in %s", test, file)
	}
}
