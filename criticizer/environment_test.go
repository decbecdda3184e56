package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

var errDenied = failure.Errorf(failure.AuthDenied, "model refused the key")

// An environment has a real Temporal server and a real database, a worker that uses
// both, and fakes for p4, the model and the mail server.
type environment struct {
	t        *testing.T
	runs     runs
	address  string
	database *storetest.Database
	world    *activitiestest.Fakes
	stop     func() // stops the worker
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	n, where := temporaltest.New(t, contract.Attributes()...)
	s := &environment{t: t, runs: runs{n}, address: where.Address, database: storetest.New(t), world: activitiestest.New()}
	s.work()
	return s
}

// work runs a worker for every queue.
func (s *environment) work() {
	s.t.Helper()
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, 16 bytes or more")})
	testkit.NoError(s.t, err)
	w, quiet := s.world, slog.New(slog.DiscardHandler)
	books, outbox := s.database.Open(s.t, store.RoleBookkeeping), s.database.Open(s.t, store.RoleNotify)
	db := w.Over(s.t, s.database)
	raw, redacted, report := db.Artifacts(s.t, review.NamespaceRaw), db.Artifacts(s.t, review.NamespaceRedacted), db.Artifacts(s.t, review.NamespaceReport)
	fetch := s.database.Open(s.t, store.RoleFetch)
	notifying := &activities.Notifier{
		Log: quiet, Reports: report, Outbox: outbox, Post: w,
		Policy: activities.RecipientPolicy{CleanTo: activities.CleanToAuthor, Max: 10},
	}
	posting := &activities.Poster{Notifier: notifying}
	var stops []func()
	for queue, acts := range map[string]any{
		contract.QueueBookkeeping: &activities.Bookkeeper{Jobs: books, Resets: s.runs.Namespace},
		contract.QueueFetch:       &activities.Fetcher{Changes: w, Recipients: fetch, Contents: fetch, Raw: raw},
		contract.QueueRedact:      &activities.Redactor{Raw: raw, Redacted: redacted, Pipeline: pipeline},
		contract.QueueLLM:         &activities.Model{Redacted: redacted, Reports: report, Answers: db.Artifacts(s.t, review.NamespaceAnswer), Accounts: db, Reviewer: w, Pipeline: pipeline},
		contract.QueueNotify:      notifying,

		contract.QueueOf(review.ChannelWebhook): posting,
		contract.QueueOf(review.ChannelSwarm):   posting,
	} {
		serving := worker.New(s.runs.Client, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{
			&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: queue == contract.QueueBookkeeping},
		}})
		serving.RegisterActivity(acts)
		if queue == contract.QueueBookkeeping {
			serving.RegisterWorkflow(workflows.ReviewChangelist)
		}
		testkit.NoError(s.t, serving.Start())
		stops = append(stops, serving.Stop)
	}
	s.stop = sync.OnceFunc(func() {
		for _, stop := range stops {
			stop()
		}
	})
	s.t.Cleanup(func() { s.stop() })
}

func requestFor(cl review.Changelist) review.Request {
	return review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
}

// review reviews a changelist to its end; the model's calls fail with these errors.
func (s *environment) review(cl review.Changelist, model ...error) {
	s.t.Helper()
	s.world.Fail("Review", model...)
	if err := s.start(cl).Get(s.t.Context(), nil); (err != nil) != (len(model) > 0) {
		s.t.Fatalf("review of %d ended with %v", cl, err)
	}
}

// start starts the review of a changelist.
func (s *environment) start(cl review.Changelist) client.WorkflowRun {
	s.t.Helper()
	req := requestFor(cl)
	run, err := s.runs.ExecuteWorkflow(s.t.Context(), contract.StartOptions(req), workflows.ReviewChangelist, req)
	testkit.NoError(s.t, err)
	return run
}

// ended waits until a changelist's newest run has ended.
func (s *environment) ended(cl review.Changelist) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.runs.GetWorkflow(ctx, requestFor(cl).Key, "").Get(ctx, nil); ctx.Err() != nil {
		s.t.Fatalf("changelist %d has no end: %v", cl, err)
	}
}

// An answer is the output of one run of the command.
type answer struct {
	out, err string
	status   int
}

// criticizer runs the command.
func (s *environment) criticizer(args ...string) answer {
	s.t.Helper()
	return s.with(nil, args...)
}

// with runs the command with more environment variables.
func (s *environment) with(env map[string]string, args ...string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	vars := map[string]string{
		"CRITICIZER_DATABASE_URL": s.database.URL.Reveal(), "CRITICIZER_TEMPORAL_ADDRESS": s.address,
		"CRITICIZER_TEMPORAL_NAMESPACE": s.runs.Name, "SUDO_USER": "olga",
	}
	maps.Copy(vars, env)
	var out, errs strings.Builder
	c := &app{getenv: func(name string) string { return vars[name] }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	status := c.run(ctx, args)
	return answer{out.String(), errs.String(), status}
}

// must runs the command and fails the test if it fails.
func (s *environment) must(args ...string) string {
	s.t.Helper()
	a := s.criticizer(args...)
	if a.status != 0 || a.err != "" {
		s.t.Fatalf("criticizer %s: status %d\n%s", strings.Join(args, " "), a.status, a.err)
	}
	return a.out
}

// refuses is [checkRefusal] for a command that reports on each of several items.
func (s *environment) refuses(a answer, status int, subject string) {
	s.t.Helper()
	a.out = ""
	checkRefusal(s.t, "", a, status, subject)
}

// checkRefusal fails the test unless the command printed nothing and ended with the
// status, an error and a hint of one line, which together name the subject.
func checkRefusal(t *testing.T, name string, a answer, status int, subject string) {
	t.Helper()
	problem, hint, _ := strings.Cut(a.err, "\nhint: ")
	named := strings.HasPrefix(problem, "criticizer: error: ") && strings.Contains(a.err, subject)
	if a.status != status || a.out != "" || !named || strings.Count(hint, "\n") != 1 {
		t.Errorf("%s: %+v; want status %d, an error that names %q, and a hint", name, a, status, subject)
	}
}

// contains fails the test unless text contains all words in this order.
func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		_, after, ok := strings.Cut(rest, word)
		if !ok {
			t.Fatalf("no %q (in the order of %q) in\n%s", word, words, text)
		}
		rest = after
	}
}

// digest returns the state that a command without effect does not change.
func (s *environment) digest() string {
	s.t.Helper()
	rows, err := s.database.Conn(s.t).Query(s.t.Context(), `
		select 'letter ' || id || state || resolved_by from criticizer.dead_letters
		union all select 'replay ' || id || new_run_id from criticizer.replays
		union all select 'request ' || id || coalesce(new_run_id, '') from criticizer.replay_requests
		union all select 'audit ' || id from criticizer.audit_log
		union all select 'job ' || id || state || run_id from criticizer.jobs order by 1`)
	testkit.NoError(s.t, err)
	var lines []string
	for rows.Next() {
		var line string
		testkit.NoError(s.t, rows.Scan(&line))
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// count waits until the number of workflow runs that match query is want.
func (s *environment) count(query string, want int64) {
	s.t.Helper()
	var got int64
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		answer, err := s.runs.CountWorkflow(s.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: s.runs.Name, Query: query})
		testkit.NoError(s.t, err)
		if got = answer.GetCount(); got == want {
			return
		}
	}
	s.t.Fatalf("%d runs are %s, want %d", got, query, want)
}

// letterOf returns the ID of the changelist's newest dead letter.
func (s *environment) letterOf(cl review.Changelist) string {
	s.t.Helper()
	var id int64
	err := s.database.Conn(s.t).QueryRow(s.t.Context(), `select max(id) from criticizer.dead_letters where changelist_id = $1`, int64(cl)).Scan(&id)
	testkit.NoError(s.t, err)
	return fmt.Sprint(id)
}
