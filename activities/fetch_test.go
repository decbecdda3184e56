package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// openRequest opens a database with the job of the request.
func openRequest(t *testing.T, w *activitiestest.Fakes) activitiestest.Database {
	t.Helper()
	db := w.Open(t)
	if _, err := db.OpenJob(t.Context(), request, "run"); err != nil {
		t.Fatal(err)
	}
	return db
}

// newFetcher returns stage fetch with the change of the fakes.
func newFetcher(t *testing.T, w *activitiestest.Fakes) *activities.Fetcher {
	t.Helper()
	db := openRequest(t, w)
	return &activities.Fetcher{Changes: w, Recipients: db, Contents: db, Raw: db.Artifacts(t, review.NamespaceRaw)}
}

// fetch runs stage fetch once.
func fetch(stage *activities.Fetcher) (result activities.FetchResult, err error) {
	env := newEnv(&activities.Interceptor{Scrub: plain})
	env.RegisterActivity(stage)
	value, err := env.ExecuteActivity(stage.Fetch, activities.StageParams{Request: request})
	if err != nil {
		return result, err
	}
	return result, value.Get(&result)
}

// A change of markup is stored: within the limits of p4 its escapes must not exceed the limits of
// an artifact, which would fail the review of all its files.
func TestLargeChangeOfMarkupIsStored(t *testing.T) {
	t.Parallel()
	const line = "+<td>5</td>\n"
	w := activitiestest.New()
	w.SetChange(review.Change{Number: 4711, Files: []review.File{{DepotPath: "//depot/a.xml", Diff: "@@ -0,0 +1 @@\n" + strings.Repeat(line, 30e6/len(line)-2)}}})
	if _, err := fetch(newFetcher(t, w)); err != nil {
		t.Error(err)
	}
}

type oneChange struct{ change review.Change }

func (c oneChange) Read(_ context.Context, _ review.Changelist, how review.ReadOptions) (review.Change, error) {
	c.change.Shelved = how.Shelved
	return c.change, nil
}

// A busyReplica lags in the first attempts.
type busyReplica struct{ readings []review.ReadOptions }

func (r *busyReplica) Read(_ context.Context, _ review.Changelist, how review.ReadOptions) (review.Change, error) {
	r.readings = append(r.readings, how)
	if how.LastAttempt {
		return review.Change{Number: 4711, Files: []review.File{{DepotPath: "//depot/f", Skipped: review.SkipDamaged}}}, nil
	}
	return review.Change{}, failure.Errorf(failure.ReplicaBehind, "it lags")
}

// Each attempt waits longer for a replica than the one before, with jitter, and the last one
// takes what is there.
func TestFetchIsPatientWithReplicas(t *testing.T) {
	t.Parallel()
	replica := &busyReplica{}
	stage := newFetcher(t, activitiestest.New())
	stage.Changes = replica
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: plain}}})
	env.RegisterActivity(stage)
	env.SetTestTimeout(time.Minute)
	begin := env.Now()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: failure.AttemptBudget},
		})
		return workflow.ExecuteActivity(ctx, stage.Fetch, activities.StageParams{
			Request: review.Request{Changelist: 4711, Version: 1, Key: "k", Shelved: true, ShelvedAt: at},
		}).Get(ctx, nil)
	})
	const least, jitter = (15 + 30 + 60 + 60) * time.Second, (1 + 2 + 4 + 8) * time.Second
	if took := env.Now().Sub(begin); env.GetWorkflowError() != nil || took <= least || took > least+jitter {
		t.Errorf("ended after %s with %v, want 15, 30, 60 and 60 seconds and the jitter", took, env.GetWorkflowError())
	}
	if n := len(replica.readings); n != failure.AttemptBudget || !replica.readings[n-1].Shelved || !replica.readings[n-1].ShelvedAt.Equal(at) {
		t.Errorf("read %+v", replica.readings)
	}
}

// An operator's reset of the activity begins with attempt 1 and keeps the heartbeats.
func TestFetchAfterAResetOfTheActivity(t *testing.T) {
	t.Parallel()
	stage := newFetcher(t, activitiestest.New())
	stage.Changes = &busyReplica{}
	env := newEnv(&activities.Interceptor{Scrub: plain})
	env.RegisterActivity(stage)
	env.SetHeartbeatDetails(map[string]int{"failures": 1, "stopped": 2})
	_, err := env.ExecuteActivity(stage.Fetch, activities.StageParams{Request: request})
	var report failure.Report
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Details(&report) != nil {
		t.Fatalf("ended with %v", err)
	}
	if report.Class != failure.ReplicaBehind || report.Failures() != 1 {
		t.Errorf("report is %+v, want one failure", report)
	}
}

// A stage whose recipients are not stored would mail nobody.
func TestFetchFailsWithoutItsRecipients(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	stage := newFetcher(t, w)
	w.Fail("SaveRecipients", failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
	for _, want := range []failure.Class{failure.DatabaseUnavailable, ""} {
		if _, err := fetch(stage); classOf(err) != want {
			t.Errorf("ended with %v, want class %q", err, want)
		}
	}
}

// The result is part of Temporal's history: it does not name the author.
func TestResultOfFetchDoesNotNameTheAuthor(t *testing.T) {
	t.Parallel()
	change := review.Change{Number: 4711, User: "annabel", Recipients: []review.Recipient{{User: "annabel", Address: "annabel@corp.test", Role: review.RoleAuthor}}}
	stage := newFetcher(t, activitiestest.New())
	stage.Changes = oneChange{change}
	result, err := fetch(stage)
	if err != nil || result.Author == "" || strings.Contains(fmt.Sprint(result), "annabel") {
		t.Errorf("result %+v, %v", result, err)
	}
}

// The author is a bot by user or by address.
func TestBotsAreKnownByNameAndAddress(t *testing.T) {
	t.Parallel()
	author := review.Recipient{User: "alice", Address: alice, Role: review.RoleAuthor}
	for pattern, want := range map[string]bool{"ALI*": true, "*@corp.test": true, "bob": false, "": false} {
		stage := newFetcher(t, activitiestest.New())
		stage.Changes = oneChange{review.Change{Number: 4711, User: "alice", Recipients: []review.Recipient{author, {User: "bob", Address: bob, Role: review.RoleSubscriber}}}}
		stage.Bots = []string{pattern}
		result, err := fetch(stage)
		if err != nil || result.ByBot != want {
			t.Errorf("with bots %q the author is a bot: %v, %v; want %v", pattern, result.ByBot, err, want)
		}
	}
}

type unreadable struct{}

func (unreadable) Read(context.Context, review.Changelist, review.ReadOptions) (review.Change, error) {
	return review.Change{User: "alice", Recipients: []review.Recipient{{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor}}},
		failure.Errorf(failure.UpstreamUnavailable, "p4 print failed")
}

// The author of a change that cannot be read is kept: nobody else would learn that it waits.
func TestAuthorOfAnUnreadableChangeIsKept(t *testing.T) {
	t.Parallel()
	w := activitiestest.New()
	db := openRequest(t, w)
	stage := &activities.Fetcher{Changes: unreadable{}, Recipients: db, Contents: db, Raw: db.Artifacts(t, review.NamespaceRaw)}
	if _, err := fetch(stage); classOf(err) != failure.UpstreamUnavailable {
		t.Errorf("ended with %v", err)
	}
	if got, err := db.Recipients(t.Context(), 4711, 1); err != nil || len(got) != 1 || got[0].Address != "alice@corp.test" {
		t.Errorf("saved %+v, %v", got, err)
	}
}
