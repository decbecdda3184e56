package activities

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/failure"
	server "github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// executedOnce fails unless the provider executed each job exactly once.
func (r *rig) executedOnce(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		if n := r.provider.executed[id]; n != 1 {
			t.Errorf("job %s was executed %d times", id, n)
		}
	}
}

// all fails unless every job has the status.
func (r *rig) all(t *testing.T, want rewrite.Status, ids []string) {
	t.Helper()
	if got := r.statuses(t); got[want] != len(ids) || len(got) != 1 {
		t.Fatalf("jobs are %v, want all %d %s", got, len(ids), want)
	}
}

// A lane is what executes the jobs of a mode.
type laneOf struct {
	mode    rewrite.ExecutionMode
	claims  rewrite.Worker // claims the jobs
	claimed rewrite.Status // of a job that it has executed or submitted
	workers []rewrite.Worker
}

var lanes = []laneOf{
	{rewrite.Async, rewrite.AsyncLane, rewrite.Completed, []rewrite.Worker{rewrite.AsyncLane}},
	{rewrite.Batch, rewrite.Submitter, rewrite.BatchSubmitted, []rewrite.Worker{rewrite.Submitter, rewrite.Collector}},
}

func lastError(job rewrite.Job) string {
	if job.LastError == nil {
		return ""
	}
	return *job.LastError
}

// Jobs of the async lane are executed one by one. Secrets never reach the provider and are
// restored in the result (rewrite 9).
func TestAsyncLane(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 3, rewrite.Async)
	var said []string
	var mu sync.Mutex
	r.provider.answer = func(item rewrite.Item) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, item.Text.String())
		return "Kindly: " + item.Text.String(), nil
	}
	r.must(t, rewrite.AsyncLane)
	r.all(t, rewrite.Completed, ids)
	r.executedOnce(t, ids)
	for _, text := range said {
		if strings.Contains(text, "ann@corp.example") {
			t.Error("an address reached the provider")
		}
	}
	var ref string
	testkit.NoError(t, r.scan(`select min(result_ref) from complaint_rewrite.jobs`, &ref))
	if got := r.stored(t, ref); got != "Kindly: "+message {
		t.Errorf("stored result is %q", got)
	}
}

// No log has the text of a message or a rewrite (rewrite 10).
func TestNoTextIsLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue(t, 2, rewrite.Async)
	r.enqueue(t, 2, rewrite.Batch)
	r.must(t, rewrite.AsyncLane, rewrite.Submitter, rewrite.Collector)
	for _, text := range []string{"never clean", "Kindly", "ann@"} {
		if strings.Contains(r.log.String(), text) {
			t.Errorf("the log holds %q", text)
		}
	}
	if !strings.Contains(r.log.String(), "batch collected") {
		t.Error("nothing was logged at all")
	}
}

// A run without pending items is recorded and is not an error (rewrite 5, 10).
func TestSkippedRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, worker := range rewrite.Workers() {
		r.must(t, worker)
		if want := string(worker) + " skipped: no pending items"; !strings.Contains(r.log.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
	var events int
	testkit.NoError(t, r.scan(`select count(*) from complaint_rewrite.runs where event = worker || ' skipped: no pending items'`, &events))
	if events != 3 {
		t.Errorf("%d skip events recorded, want 3", events)
	}
}

// Jobs that exceed the limit wait for the next run (rewrite 6.1).
func TestRunsAreLimited(t *testing.T) {
	t.Parallel()
	for _, lane := range lanes {
		t.Run(string(lane.mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.cfg.Run.MaxJobsPerRun = 2
			ids := r.enqueue(t, 5, lane.mode)
			for _, want := range []int{2, 4, 5} {
				run := uuid.NewString()
				for range 2 { // an attempt that died after its work claims no further jobs when it is retried
					_, err := r.run(t, lane.claims, run)
					testkit.NoError(t, err)
				}
				if got := r.statuses(t); got[lane.claimed] != want || got[rewrite.Queued] != 5-want {
					t.Fatalf("jobs are %v, want %d %s", got, want, lane.claimed)
				}
			}
			r.executedOnce(t, ids)
		})
	}
}

// A run begins no work after max_runtime_seconds; its other jobs are queued with a short
// wait, and no attempt is counted (rewrite 6).
func TestRuntimeIsLimited(t *testing.T) {
	t.Parallel()
	var last rewrite.Job
	for seconds := 2; ; seconds *= 2 {
		r := newRig(t)
		r.cfg.Concurrency, r.cfg.Run.MaxRuntimeSeconds = 1, seconds
		ids := r.enqueue(t, 4, rewrite.Async)
		r.provider.answer = func(item rewrite.Item) (string, error) {
			time.Sleep(r.cfg.Run.MaxRuntime())
			return "Kindly: " + item.Text.String(), nil
		}
		r.must(t, rewrite.AsyncLane)
		got := r.statuses(t)
		if got[rewrite.Completed] == 0 && got[rewrite.Queued] == 4 {
			continue // a busy machine began too late
		}
		if got[rewrite.Completed] > 2 || got[rewrite.Completed]+got[rewrite.Queued] != 4 { // the second is already taken
			t.Fatalf("jobs are %v", got)
		}
		last = r.job(t, ids[3])
		break
	}
	if wait := last.NotBeforeAt.Sub(last.UpdatedAt); lastError(last) != rewrite.Overflow || last.AttemptCount != 0 || wait > time.Minute {
		t.Errorf("overflow job: %+v", last)
	}
}

// All attempts of a run share its runtime: one that begins after it calls, submits and
// collects nothing (rewrite 6).
func TestRetryAfterTheRuntimeBeginsNothing(t *testing.T) {
	t.Parallel()
	for worker, mode := range map[rewrite.Worker]rewrite.ExecutionMode{
		rewrite.AsyncLane: rewrite.Async, rewrite.Submitter: rewrite.Batch, rewrite.Collector: rewrite.Batch,
	} {
		r, run := newRig(t), uuid.NewString()
		r.enqueue(t, 2, mode)
		if worker == rewrite.Collector {
			r.must(t, rewrite.Submitter)
		}
		before := r.statuses(t)
		testkit.NoError(t, r.queue.BeginRun(t.Context(), run, worker, 25))
		r.first(run)
		r.edit(t, `update complaint_rewrite.runs set started_at = now() - interval '1 hour' where run_id = '`+run+`'`)
		if _, err := r.run(t, worker, run); err != nil {
			t.Fatal(err)
		}
		if got := r.statuses(t); !maps.Equal(got, before) {
			t.Errorf("%s: jobs are %v, were %v", worker, got, before)
		}
	}
}

// The collector has a limit, too (rewrite 12): no batch exceeds the room that is left.
func TestCollectorIsLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Run.MaxJobsPerRun = 1
	most := 4
	ids := r.enqueue(t, most+1, rewrite.Batch)
	for range ids {
		r.must(t, rewrite.Submitter)
	}
	r.must(t, rewrite.Collector)
	if got := r.statuses(t); got[rewrite.Completed] != most || got[rewrite.BatchSubmitted] != 1 {
		t.Errorf("jobs are %v after one run, want %d completed", got, most)
	}
	r.must(t, rewrite.Collector)
	r.all(t, rewrite.Completed, ids)
}

// The outcome of a job by the error of its call. Only a failure that names the job is permanent
// (rewrite 8). A refusal that names no job counts no attempt, but does not repeat for ever.
func TestFailuresOfCalls(t *testing.T) {
	t.Parallel()
	type want int
	const (
		fails want = iota // at once
		attempt
		round // no attempt, and then, after many in a row, one
	)
	for name, tt := range map[string]struct {
		class  failure.Class
		answer string
		want   want
		err    string
	}{
		"a transient failure":           {class: failure.UpstreamInternal, want: attempt, err: "UPSTREAM_INTERNAL"},
		"a rate limit":                  {class: failure.RateLimited, want: round, err: "RATE_LIMITED"},
		"an answer that is no answer":   {answer: "nonsense", want: attempt, err: "SCHEMA_INVALID"},
		"an answer without the address": {answer: "Please clean.", want: attempt, err: "SCHEMA_INVALID"},
		"the message itself":            {answer: "=", want: attempt, err: "SCHEMA_INVALID"},
		"a refused key":                 {class: failure.AuthDenied, want: round, err: "AUTH_DENIED"},
		"no credit":                     {class: failure.QuotaExhausted, want: round, err: "QUOTA_EXHAUSTED"},
		"an unknown model":              {class: failure.NotFound, want: round, err: "NOT_FOUND"},
		"a refusal without a class":     {class: failure.EndpointRefused, want: round, err: "ENDPOINT_REFUSED"},
		"refused content":               {class: failure.ContentPolicy, want: fails, err: "CONTENT_POLICY"},
		"a message that is too long":    {class: failure.TooLarge, want: fails, err: "TOO_LARGE"},
		"a request that is invalid":     {class: failure.InputInvalid, want: fails, err: "INPUT_INVALID"},
		"a secret that would leave":     {class: failure.RedactionBlocked, want: fails, err: "REDACTION_BLOCKED"},
	} {
		for _, lane := range lanes {
			t.Run(name+", "+string(lane.mode), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				id := r.enqueue(t, 1, lane.mode)[0]
				r.provider.answer = func(item rewrite.Item) (string, error) {
					if tt.class != "" {
						return "", failure.Errorf(tt.class, "refused")
					}
					return strings.ReplaceAll(tt.answer, "=", item.Text.String()), nil
				}
				attempts := map[want][]int{fails: {1}, attempt: {1, 2}, round: {0, 0, 1, 1, 1, 2}}[tt.want]
				for i, n := range attempts {
					r.edit(t, fmt.Sprintf(`update complaint_rewrite.jobs set capacity_rounds = %d where capacity_rounds = 0`, rewrite.MaxRounds-3))
					r.must(t, lane.workers...)
					job, status, wait := r.job(t, id), rewrite.Queued, 900*time.Second // (rewrite 8.1)
					if i == len(attempts)-1 {
						status = rewrite.Failed // (rewrite 8.2)
					}
					if n == 0 || i > 0 && n == attempts[i-1] {
						wait = 30 * time.Second
					}
					if job.Status != status || lastError(job) != tt.err || job.AttemptCount != n || job.LastErrorAt == nil {
						t.Fatalf("after run %d job is %+v", i+1, job)
					}
					if got := job.NotBeforeAt; status == rewrite.Queued && got.Sub(job.UpdatedAt) != wait {
						t.Errorf("after run %d it waits %s, want %s", i+1, got.Sub(job.UpdatedAt), wait)
					}
					r.later(t)
				}
				if n := r.provider.executed[id]; n != len(attempts) {
					t.Errorf("it was executed %d times", n)
				}
			})
		}
	}
}

// A run that is canceled or terminated finishes the calls in flight, which are billed, and queues its
// other jobs at once, without an attempt. A worker that stops cuts its calls off.
func TestCanceledRun(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"canceled": temporal.NewCanceledError(), "terminated": serviceerror.NewNotFound("workflow execution already completed"), "stopped": server.ErrStopping,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.cfg.Concurrency = 1
			sim := llmsim.New(llmsim.Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			r.provider.provider = newClient(t, r.pipeline, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodPost {
					cancel(cause)
					if cause == server.ErrStopping { //nolint:errorlint // the same value
						_, _ = io.Copy(io.Discard, req.Body) // then the end of the connection is noticed
						<-req.Context().Done()
						return
					}
				}
				sim.ServeHTTP(w, req)
			}))
			r.enqueue(t, 5, rewrite.Async)
			run := uuid.NewString()
			w := r.worker(t, run)
			testkit.NoError(t, r.queue.BeginRun(t.Context(), run, rewrite.AsyncLane, 25))
			_ = w.ExecuteJobs(ctx) // perhaps that a text could not be read any more
			got, attempts := r.statuses(t), r.number(t, `select sum(attempt_count) from complaint_rewrite.jobs`)
			done, lost := 1, 0
			if cause == server.ErrStopping { //nolint:errorlint // the same value
				done, lost = 0, 1
			}
			if got[rewrite.Completed] != done || got[rewrite.Queued] != 5-done || attempts != lost {
				t.Errorf("jobs are %v after %d attempts", got, attempts)
			}
		})
	}
}

// A run that a reset gave another ID begins as any other, and ends.
func TestResetRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 2, rewrite.Async)
	run := uuid.NewString()
	r.first(run) // its history says that it has begun
	if _, err := r.run(t, rewrite.AsyncLane, run); err != nil {
		t.Fatal(err)
	}
	r.all(t, rewrite.Completed, ids)
	if n := r.number(t, `select succeeded_count from complaint_rewrite.runs where run_id = '`+run+`'`); n != 2 {
		t.Errorf("the run records %d results", n)
	}
	if _, err := r.worker(t, uuid.NewString()).FinishRun(t.Context()); err != nil {
		t.Errorf("the end of a run that was reset after its work: %v", err)
	}
}

// A job that alone is refused without a reason loses attempts; jobs that are refused alike lose
// none, and end the run.
func TestRefusalsWithoutAReason(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]func(mark string) bool{
		"of one job": func(mark string) bool { return mark == "(mark 0)" },
		"of all":     func(string) bool { return true },
	} {
		for _, lane := range lanes {
			t.Run(name+", "+string(lane.mode), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.cfg.Concurrency = 1
				for i := range 6 {
					r.enqueueText(t, 1, lane.mode, fmt.Sprintf("You never clean the kitchen (mark %d)!", i))
				}
				r.provider.answer = func(item rewrite.Item) (string, error) {
					if text := item.Text.String(); !refuses(mark.FindString(text)) {
						return "Kindly: " + text, nil
					}
					return "", failure.Errorf(failure.EndpointRefused, "400")
				}
				r.must(t, lane.workers...)
				got, attempts := r.statuses(t), r.number(t, `select sum(attempt_count) from complaint_rewrite.jobs`)
				if name == "of one job" && (got[rewrite.Completed] != 5 || attempts != 1) || name == "of all" && (got[rewrite.Queued] != 6 || attempts != 0) {
					t.Errorf("jobs are %v after %d attempts", got, attempts)
				}
				if n := len(r.provider.executed); name == "of all" && lane.mode == rewrite.Async && n != mostRefused {
					t.Errorf("%d calls", n)
				}
			})
		}
	}
}

// A provider that fails every call ends the run for the model: few jobs lose an attempt. A worker
// must not use rate limits as flow control: it stops at the first one (rewrite 12).
func TestFailuresInARowEndTheRun(t *testing.T) {
	t.Parallel()
	for class, attempts := range map[failure.Class]int{failure.UpstreamUnavailable: mostFailed, failure.RateLimited: 0} {
		r := newRig(t)
		r.cfg.Concurrency = 1
		r.enqueue(t, 10, rewrite.Async)
		other := r.enqueue(t, 1, rewrite.Async, func(o *rewrite.Order) { o.Routing.Model = "m2" })
		r.provider.answer = func(item rewrite.Item) (string, error) {
			if item.JobID == other[0] {
				return "Kindly: " + item.Text.String(), nil
			}
			return "", failure.Errorf(class, "no")
		}
		r.must(t, rewrite.AsyncLane)
		if n := r.number(t, `select sum(attempt_count) from complaint_rewrite.jobs`); n != attempts {
			t.Errorf("%s: %d attempts are counted", class, n)
		}
		if job := r.job(t, other[0]); job.Status != rewrite.Completed {
			t.Errorf("%s: the job of another model is %s", class, job.Status)
		}
		calls, limited := len(r.provider.executed)-1, r.number(t, `select rate_limit_errors from complaint_rewrite.runs`) // (rewrite 10)
		if class == failure.RateLimited && (calls != 1 || limited != 1) {
			t.Errorf("%d calls after a rate limit, and the run records %d", calls-1, limited)
		}
	}
}

// The failure of one job neither retries nor ends the run of the others.
func TestFailureOfOneJob(t *testing.T) {
	t.Parallel()
	for _, lane := range lanes {
		t.Run(string(lane.mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			odd := r.enqueue(t, 1, lane.mode)[0]
			r.edit(t, `update complaint_rewrite.requests set text_ref = 'message:`+broken+`'`)
			expired := r.enqueue(t, 1, lane.mode)[0]
			r.edit(t, `update complaint_rewrite.requests set text_ref = 'message:gone' where text_ref <> 'message:`+broken+`'`)
			good := r.enqueue(t, 2, lane.mode)
			r.must(t, lane.workers...)
			if job := r.job(t, odd); job.Status != rewrite.Queued || lastError(job) != "INVARIANT_VIOLATED" || job.AttemptCount != 1 {
				t.Errorf("job is %+v", job)
			}
			if job := r.job(t, expired); job.Status != rewrite.Failed || lastError(job) != "ARTIFACT_EXPIRED" {
				t.Errorf("job with an expired message is %+v", job)
			}
			r.executedOnce(t, good)
			if got := r.statuses(t); got[rewrite.Completed] != len(good) {
				t.Errorf("jobs are %v", got)
			}
		})
	}
}

// An unknown adapter fails only its job, and no other adapter is used.
func TestUnknownAdapter(t *testing.T) {
	t.Parallel()
	for _, mode := range []rewrite.ExecutionMode{rewrite.Async, rewrite.Batch} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			odd := r.enqueue(t, 1, mode, func(o *rewrite.Order) { o.Routing.AdapterKind = "carrier_pigeon" })[0]
			good := r.enqueue(t, 1, mode)[0]
			r.must(t, rewrite.AsyncLane, rewrite.Submitter, rewrite.Collector)
			if job := r.job(t, odd); job.Status != rewrite.Failed || lastError(job) != "ADAPTER_UNSUPPORTED" || job.Routing.AdapterKind != "carrier_pigeon" {
				t.Errorf("job is %+v", job)
			}
			if job := r.job(t, good); job.Status != rewrite.Completed {
				t.Errorf("the other job is %s", job.Status)
			}
			if r.provider.executed[odd] != 0 {
				t.Error("the job was executed")
			}
		})
	}
}

// Jobs without a decision are routed before they are claimed.
func TestUnroutedJobsAreRouted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.enqueue(t, 1, rewrite.Async, func(o *rewrite.Order) { o.Routing = nil })[0]
	r.must(t, rewrite.AsyncLane)
	if job := r.job(t, id); job.Status != rewrite.Completed || *job.Routing != decision(rewrite.Async) {
		t.Errorf("job is %+v", job)
	}
}

// Each run of the collector deletes the texts that have expired, and no others, and records
// the deletion (security 9.4.5).
func TestCollectorDeletesExpiredTexts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueueText(t, 1, rewrite.Async, "You never write!")
	r.edit(t, `update complaint_rewrite.messages set stored_at = now() - interval '2 hours', expires_at = now() - interval '1 hour'`)
	r.enqueueText(t, 1, rewrite.Async, "You never call!")
	r.must(t, rewrite.AsyncLane)
	const texts = `select (select count(*) from complaint_rewrite.messages) + (select count(*) from complaint_rewrite.results)`
	if n := r.number(t, texts); n != 3 {
		t.Fatalf("%d texts before the run, want two messages and a result", n)
	}
	r.must(t, rewrite.Collector)
	if n := r.number(t, texts); n != 2 {
		t.Errorf("%d texts are left, want 2", n)
	}
	if n := r.number(t, `select sum((detail ->> 'messages')::int + (detail ->> 'results')::int) from complaint_rewrite.audit_log where action = 'artifact.expire'`); n != 1 {
		t.Errorf("%d deletions are recorded, want 1", n)
	}
}

// A crash around the claim loses no job and executes none twice.
func TestAsyncWorkerCrashes(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"ClaimJobs before", "ClaimJobs after"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.enqueue(t, 5, rewrite.Async)
			r.crash = moment
			run := uuid.NewString()
			if dead, err := r.run(t, rewrite.AsyncLane, run); !dead {
				t.Fatalf("it did not crash: %v", err)
			}
			if _, err := r.run(t, rewrite.AsyncLane, run); err != nil {
				t.Fatal(err)
			}
			r.all(t, rewrite.Completed, ids)
			r.executedOnce(t, ids)
		})
	}
}

// An attempt is counted before its call: a job whose every call crashes its worker is
// called at most max_attempts times, whether the same run or, after the claim timeout,
// another one continues (rewrite 7.2, 8.2). The same run also executes the jobs that were claimed
// beside it, and they lose no attempt.
func TestLostCallsAreCounted(t *testing.T) {
	t.Parallel()
	for reason, retried := range map[string]bool{"WORKER_STOPPED": true, "stale_claim_failed": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.enqueue(t, 3, rewrite.Async)
			id, beside := ids[0], ids[1:]
			calls := 0
			for range 4 {
				run := uuid.NewString()
				calls += r.crashInCall(t, run, id)
				if retried {
					_, err := r.run(t, rewrite.AsyncLane, run)
					testkit.NoError(t, err)
				}
				r.later(t)
			}
			if job := r.job(t, id); job.Status != rewrite.Failed || job.AttemptCount != job.MaxAttempts || calls != job.MaxAttempts || lastError(job) != reason {
				t.Errorf("%d calls, job is %+v", calls, job)
			}
			if n := r.provider.executed[id]; n != 0 {
				t.Errorf("it was called %d times more", n)
			}
			if !retried {
				return
			}
			for _, id := range beside {
				if job := r.job(t, id); job.Status != rewrite.Completed || job.AttemptCount != 0 || lastError(job) != "" {
					t.Errorf("a job beside it is %s, attempts %d, %s", job.Status, job.AttemptCount, lastError(job))
				}
			}
			r.executedOnce(t, beside)
		})
	}
}

// crashInCall claims jobs in a run that ends in the call of the job id, and returns the number of calls.
func (r *rig) crashInCall(t *testing.T, run, id string) (calls int) {
	t.Helper()
	w := r.worker(t, run)
	_, err := w.BeginRun(t.Context(), rewrite.AsyncLane)
	testkit.NoError(t, err)
	r.begun[run] = true
	c, _, err := w.claim(t.Context(), run, rewrite.Async)
	testkit.NoError(t, err)
	begun, err := w.parts.Queue.BeginJob(t.Context(), id, c.Token)
	testkit.NoError(t, err)
	if begun == 1 {
		calls++
	}
	return calls
}

// A job that cannot be read fails alone, by the name of the field, without a call; the jobs
// of its run are executed.
func TestUnreadableJobsFailAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range []rewrite.ExecutionMode{rewrite.Async, rewrite.Batch} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.edit(t, `alter table complaint_rewrite.jobs drop constraint jobs_not_before_is_readable`)
			bad := r.enqueue(t, 4, mode)
			good := r.enqueue(t, 3, mode)
			fields := []string{"language_pair", "routing_decision", "routing_decision", "not_before_at"}
			for i, change := range []string{
				`language_pair = '{"from": true, "to": "en"}'`, `routing_decision = routing_decision || '{"cache_eligible": "yes"}'`,
				`routing_decision = routing_decision - 'model'`, `not_before_at = '0044-03-15 BC'`,
			} {
				r.edit(t, `update complaint_rewrite.jobs set `+change+` where job_id = '`+bad[i]+`'`)
			}
			r.must(t, rewrite.AsyncLane, rewrite.Submitter, rewrite.Collector)
			if got := r.statuses(t); got[rewrite.Completed] != len(good) {
				t.Errorf("jobs are %v", got)
			}
			for i, id := range bad {
				if job := r.job(t, id); job.Status != rewrite.Failed || lastError(job) != "unreadable_"+fields[i] || job.AttemptCount != 0 || r.provider.executed[id] != 0 {
					t.Errorf("%s: %s, %s, attempts %d", fields[i], job.Status, lastError(job), job.AttemptCount)
				}
			}
		})
	}
}

// A text that was altered, or whose key is gone, fails its job alone, even if such jobs fill
// the run, and if it happens while a batch is at the provider.
func TestTextThatCannotBeDecrypted(t *testing.T) {
	t.Parallel()
	for _, lane := range lanes {
		name, mode := string(lane.mode), lane.mode
		damages := map[string]string{
			"altered":   `update complaint_rewrite.messages set body = set_byte(body, length(body) - 1, get_byte(body, length(body) - 1) # 1)`,
			"destroyed": `update complaint_rewrite.messages set body = 'x'`,
		}
		for damage, statement := range damages {
			t.Run(name+" "+damage, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.cfg.Run.MaxJobsPerRun = 2
				bad := r.enqueueText(t, 3, mode, "a text that is damaged")
				r.edit(t, statement)
				good := r.enqueue(t, 2, mode)
				for range 3 {
					r.must(t, lane.workers...)
				}
				r.unreadable(t, bad, good)
			})
			t.Run(name+" preferences "+damage, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				good := r.enqueue(t, 1, mode)
				id, body, err := r.texts.Seal([]byte(`{"tone": "warm"}`))
				testkit.NoError(t, err)
				ref := "message:" + id
				r.edit(t, fmt.Sprintf(`insert into complaint_rewrite.messages (id, body) values ('%s', '\\x%x')`, id, body))
				bad := r.enqueue(t, 1, mode)
				r.edit(t, `update complaint_rewrite.jobs set preferences_ref = '`+ref+`' where job_id = '`+bad[0]+`'`)
				r.edit(t, statement+` where 'message:' || id = '`+ref+`'`)
				r.must(t, lane.workers...)
				r.unreadable(t, bad, good)
			})
		}
	}
	t.Run("at the provider", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		bad := r.enqueueText(t, 1, rewrite.Batch, "a text that is damaged")
		text := r.textOf(t, bad[0])
		good := r.enqueue(t, 2, rewrite.Batch)
		r.must(t, rewrite.Submitter)
		r.edit(t, `update complaint_rewrite.messages set body = 'x' where 'message:' || id = '`+text+`'`)
		r.must(t, rewrite.Collector)
		r.unreadable(t, bad, good)
	})
}

func (r *rig) textOf(t *testing.T, job string) (ref string) {
	t.Helper()
	testkit.NoError(t, r.scan(`select r.text_ref from complaint_rewrite.jobs j join complaint_rewrite.requests r using (rewrite_request_id) where j.job_id = '`+job+`'`, &ref))
	return ref
}

// unreadable fails unless the bad jobs failed for their text and the others are completed.
func (r *rig) unreadable(t *testing.T, bad, good []string) {
	t.Helper()
	for _, id := range bad {
		if job := r.job(t, id); job.Status != rewrite.Failed || lastError(job) != "ARTIFACT_UNREADABLE" {
			t.Errorf("job with a damaged text is %s, %s", job.Status, lastError(job))
		}
	}
	for _, id := range good {
		if job := r.job(t, id); job.Status != rewrite.Completed {
			t.Errorf("another job is %s, %s", job.Status, lastError(job))
		}
	}
}

// A worker with another keyset fails its runs and no job.
func TestWorkerWithAnotherKeyset(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	own := r.texts
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	testkit.NoError(t, err)
	other, err := artifact.New(store.Texts{Queue: r.db.Open(t, store.RoleWorker)},
		artifact.Config{Namespace: "message", Raw: true, Keyset: keyset, TTL: store.TTL})
	testkit.NoError(t, err)
	late := r.enqueue(t, 1, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	ids := append(r.enqueue(t, 2, rewrite.Async), append(r.enqueue(t, 2, rewrite.Batch), late...)...)
	r.texts = other
	for _, worker := range rewrite.Workers() {
		if _, err := r.run(t, worker, uuid.NewString()); failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%s: run ended with %v, want class CONFIG_INVALID", worker, err)
		}
	}
	for _, id := range ids {
		if job := r.job(t, id); job.Status == rewrite.Failed || job.AttemptCount != 0 {
			t.Errorf("job is %s after %d attempts", job.Status, job.AttemptCount)
		}
	}
	r.texts = own
	for range 2 {
		r.later(t)
		r.must(t, rewrite.AsyncLane, rewrite.Submitter, rewrite.Collector)
	}
	for _, id := range ids {
		if job := r.job(t, id); job.Status != rewrite.Completed || job.AttemptCount != 0 {
			t.Errorf("with the right keyset, job is %s, %s, after %d attempts", job.Status, lastError(job), job.AttemptCount)
		}
	}
}

// A provider that refuses a call for nothing gets no job, in any run: nothing is claimed, nothing
// is sent, and the run records it. The jobs of other providers are executed.
func TestNothingIsClaimedFromARefusingProvider(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		class  string // empty: the account was not refused
	}{
		"a key":                {401, `{"error":{"code":"invalid_api_key"}}`, "AUTH_DENIED"},
		"a key, with a 400":    {400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xy***."}`, "AUTH_DENIED"},
		"a location":           {400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, "ENDPOINT_REFUSED"},
		"no credit":            {402, `{}`, "QUOTA_EXHAUSTED"},
		"an outage":            {503, `<html>`, "UPSTREAM_UNAVAILABLE"},
		"a key without rights": {403, `{"error":{"message":"Missing scopes: api.model.read"}}`, ""},
		"no list of models":    {404, `not found`, ""},
		"a page":               {200, `<html>`, ""},
	} {
		for _, lane := range lanes {
			t.Run(name+", "+string(lane.mode), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				sim := llmsim.New(llmsim.Config{})
				var models, sent atomic.Int32
				r.provider.provider = newClient(t, r.pipeline, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if strings.HasSuffix(req.URL.Path, "/models") {
						models.Add(1)
						w.WriteHeader(tt.status)
						_, _ = io.WriteString(w, tt.body)
						return
					}
					sent.Add(1)
					sim.ServeHTTP(w, req)
				}))
				ids := r.enqueue(t, 4, lane.mode)
				r.must(t, lane.claims)
				if tt.class == "" {
					r.all(t, lane.claimed, ids)
					return
				}
				for _, id := range ids {
					if trail, err := r.db.Open(t, store.RoleOperator).Transitions(t.Context(), id); err != nil || len(trail) != 1 {
						t.Fatalf("the job has the trail %+v, %v", trail, err)
					}
				}
				if models.Load() != 1 || sent.Load() != 0 {
					t.Errorf("%d calls for nothing, %d others", models.Load(), sent.Load())
				}
				var refusals string
				testkit.NoError(t, r.scan(`select refusals::text || capacity_errors from complaint_rewrite.runs`, &refusals))
				if want := `[{"class": "` + tt.class + `", "provider": "openai"}]1`; refusals != want {
					t.Errorf("the run records %s, want %s", refusals, want)
				}
			})
		}
	}
}
