package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/store/artifact"
)

// serveRewrites starts a worker of the rewrite queue, whose provider is at endpoint, with
// more variables.
func (in *installation) serveRewrites(endpoint string, env ...string) *exec.Cmd {
	in.t.Helper()
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	if err != nil {
		in.t.Fatal(err)
	}
	in.env = append(append(in.env, "COMPLAINT_REWRITE_CONFIG="+os.DevNull,
		"COMPLAINT_REWRITE_DATABASE_URL="+in.database.URL.Reveal(), "COMPLAINT_REWRITE_KEYSET="+keyset.Reveal(), // both products may share a database
		"COMPLAINT_REWRITE_TEMPORAL_ADDRESS="+in.temporal.Address, "COMPLAINT_REWRITE_TEMPORAL_NAMESPACE="+in.temporal.Name,
		"COMPLAINT_REWRITE_REDACTION_KEY=a key of this test, long enough",
		"COMPLAINT_REWRITE_OPENAI_BASE_URL="+endpoint, "COMPLAINT_REWRITE_OPENAI_API_KEY=a key of this test",
		"COMPLAINT_REWRITE_ROUTE_MODEL=llmsim-1"), env...)
	in.output("complaint-rewrite", "migrate")
	worker := exec.Command(filepath.Join(in.bin, "complaint-rewrite"), "worker")
	worker.Env = in.env
	in.startProcess(worker)
	return worker
}

// rewriteJob returns a job in the format of complaint-rewrite enqueue.
func rewriteJob(text, mode string) map[string]any {
	return map[string]any{
		"rewrite_request_id": uuid.NewString(), "surface": "weekly_harmony", "rewrite_strength": "light_touch",
		"language_pair": map[string]string{"from": "en", "to": "en"}, "recipient_user_id": uuid.NewString(),
		"recipient_snapshot_id": uuid.NewString(), "recipient_preference_snapshot_id": uuid.NewString(),
		"routing_decision": map[string]any{
			"provider": "openai", "adapter_kind": "openai_responses", "model": "llmsim-1", "prompt_version": "v1", "policy_version": "v1", "execution_mode": mode,
		},
		"text": text, "preferences": map[string]string{"tone": "warm"},
	}
}

func (in *installation) rewriteJSON(v any, args ...string) {
	in.t.Helper()
	if err := json.Unmarshal([]byte(in.output("complaint-rewrite", append(args, "--json")...)), v); err != nil {
		in.t.Fatal(err)
	}
}

// rewriteJobs writes a file of jobs in both execution modes.
func (in *installation) rewriteJobs(text string) string {
	in.t.Helper()
	var lines bytes.Buffer
	for _, mode := range []string{"async", "batch", "batch"} {
		line, err := json.Marshal(rewriteJob(text, mode))
		if err != nil {
			in.t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	in.write("jobs.jsonl", 0o600, lines.String())
	return in.path("jobs.jsonl")
}

// Rewrites end to end: a backend enqueues messages, a worker processes them, an operator
// starts and lists runs, and the backend fetches the results. The log of the worker holds
// no message text (rewrite 10).
func TestRewrite(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "")
	worker := in.serveRewrites(in.endpoint)
	const text = "You never take the bins out. Call me at home or write to the usual address."
	out := in.output("complaint-rewrite", "enqueue", "--json", "--file", in.rewriteJobs(text))
	var jobs []string
	for line := range strings.Lines(out) {
		var receipt struct {
			JobID string `json:"job_id"`
		}
		if err := json.Unmarshal([]byte(line), &receipt); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, receipt.JobID)
	}
	in.drainRewrites()
	for _, id := range jobs {
		result := in.output("complaint-rewrite", "result", id)
		if result == "\n" || strings.Contains(result, "never") {
			t.Errorf("result of job %s is %q", id, result)
		}
	}
	var states string
	in.queryRow(`select string_agg(to_status, ' ' order by id) from complaint_rewrite.transitions where job_id = '`+jobs[1]+`'`, &states)
	if !strings.Contains(states, " batch_submitted ") || !strings.HasSuffix(states, " completed") {
		t.Errorf("a batch job went through %q", states)
	}
	var shown []struct {
		JobID  string `json:"job_id"`
		Status string `json:"status"`
	}
	if in.rewriteJSON(&shown, "jobs", "--status", "succeeded"); len(shown) != len(jobs) || shown[0].Status != "completed" {
		t.Errorf("listed are %+v, want %d completed jobs", shown, len(jobs))
	}
	in.execute(nil, "complaint-rewrite", "run") // with nothing to do
	waitFor(t, "the list to hold an idle run of the collector", func() bool {
		return strings.Contains(in.output("complaint-rewrite", "runs", "--limit", "100"), "rewrite_batch_collector skipped: no pending items")
	})
	if err := interrupt(worker); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"bins out", "usual address"} {
		if strings.Contains(in.log.String(), part) {
			t.Errorf("the log holds %q", part)
		}
	}
}

// An operator cancels, terminates or resets a run on the real server: its calls in flight are finished
// and paid once, its other jobs return to the queue while the calls last and lose no attempt, and the
// next runs execute them.
func TestRewriteRunIsEnded(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "")
	var calls atomic.Int32
	var hold atomic.Pointer[chan struct{}] // until it is closed, calls do not end
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/responses") {
			calls.Add(1)
			<-*hold.Load()
		}
		in.model.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	in.serveRewrites(provider.URL+"/v1", "COMPLAINT_REWRITE_RUN_RETRY_BACKOFF_SECONDS=1")
	waitFor(t, "the schedules", func() bool { return in.execute(nil, "complaint-rewrite", "run").status == 0 })
	ctx := t.Context()
	for name, end := range map[string]func(run *commonpb.WorkflowExecution) error{
		"cancel": func(run *commonpb.WorkflowExecution) error {
			return in.namespace.CancelWorkflow(ctx, run.WorkflowId, "")
		},
		"terminate": func(run *commonpb.WorkflowExecution) error {
			return in.namespace.TerminateWorkflow(ctx, run.WorkflowId, "", "tested")
		},
		"reset": func(run *commonpb.WorkflowExecution) error {
			_, err := in.namespace.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
				Namespace: in.temporal.Name, WorkflowExecution: run, Reason: "tested", RequestId: uuid.NewString(), WorkflowTaskFinishEventId: 4,
			})
			return err
		},
	} {
		const jobs = 7
		calls.Store(0)
		release := make(chan struct{})
		hold.Store(&release)
		var lines bytes.Buffer
		for range jobs {
			line, err := json.Marshal(rewriteJob("You never clean up "+uuid.NewString(), "async"))
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
		}
		in.write("jobs.jsonl", 0o600, lines.String())
		in.output("complaint-rewrite", "enqueue", "--file", in.path("jobs.jsonl"))
		waitFor(t, "the calls of the run to "+name, func() bool {
			if calls.Load() == 0 {
				in.execute(nil, "complaint-rewrite", "run", "rewrite_async")
			}
			return calls.Load() == 4
		})
		open, err := in.namespace.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: in.temporal.Name, Query: "WorkflowType = 'rewrite_async' and ExecutionStatus = 'Running'",
		})
		if err != nil || len(open.Executions) != 1 {
			t.Fatalf("%s: %v runs, %v", name, open.GetExecutions(), err)
		}
		if err := end(open.Executions[0].Execution); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var states []string
		if !poll(testTimeout, 100*time.Millisecond, func() bool {
			states = in.queryStrings(`select status || ' ' || attempt_count || ' ' || count(*) from complaint_rewrite.jobs
				where status <> 'completed' group by status, attempt_count order by status`)
			return slices.Equal(states, []string{"processing 0 4", "queued 0 3"})
		}) {
			t.Errorf("%s: while the calls last, the jobs are %q", name, states)
		}
		close(release)
		in.drainRewrites()
		if n := calls.Load(); n != jobs {
			t.Errorf("%s: %d calls for %d jobs", name, n, jobs)
		}
	}
	if failed := in.queryStrings(`select last_error from complaint_rewrite.jobs where status <> 'completed' or attempt_count > 0`); len(failed) > 0 {
		t.Errorf("jobs have lost attempts: %q", failed)
	}
}
