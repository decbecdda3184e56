package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

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
