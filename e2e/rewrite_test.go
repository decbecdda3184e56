package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// rewriteJob is a job as starter rewrite enqueue reads it.
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

// The whole way of a rewrite: enqueued by the starter, worked by a worker of the
// stage rewrite, run and looked at by the operator, fetched by the backend; and
// no message in the worker's log.
func TestRewrite(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "")
	in.env = append(in.env, "CRITICIZER_REWRITE_OPENAI_BASE_URL="+in.endpoint, "CRITICIZER_REWRITE_OPENAI_API_KEY=a key of this test",
		"CRITICIZER_REWRITE_ROUTE_MODEL=llmsim-1")
	const text = "You never take the bins out. Call me at home or write to the usual address."
	out := in.output("starter", "rewrite", "enqueue", "--json", "--file", in.rewriteJobs(text))
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
	worker := in.startWorker("--stages", "rewrite")
	deadline := time.Now().Add(testTimeout)
	for !strings.Contains(in.output("operator", "rewrite", "jobs", "--status", "succeeded"), jobs[0]) ||
		strings.Count(in.output("operator", "rewrite", "jobs", "--status", "completed", "--json"), `"job_id"`) < len(jobs) {
		if time.Now().After(deadline) {
			t.Fatalf("not all jobs were completed:\n%s%s", in.output("operator", "rewrite", "jobs"), in.output("operator", "rewrite", "runs"))
		}
		if run := exec.Command(filepath.Join(binDir, "operator"), "rewrite", "run"); run != nil { // there may be no schedule yet
			run.Env = in.env
			_ = run.Run()
		}
		time.Sleep(time.Second)
	}
	for _, id := range jobs {
		result := in.output("starter", "rewrite", "result", id)
		if result == "\n" || strings.Contains(result, "never") {
			t.Errorf("result of job %s is %q", id, result)
		}
	}
	expect(t, "rewrite show", in.output("operator", "rewrite", "show", jobs[1]), "queued", "processing", "batch_submitted", "completed")
	expect(t, "rewrite runs", in.output("operator", "rewrite", "runs", "--limit", "100"), "rewrite_batch_collector", "skipped: no pending items")
	_ = worker.Process.Signal(os.Interrupt)
	if err := worker.Wait(); err != nil {
		t.Error(err)
	}
	for _, reported := range []string{"bins out", "usual address"} {
		if strings.Contains(in.log.String(), reported) {
			t.Errorf("the log holds %q", reported) // queue 10
		}
	}
}
