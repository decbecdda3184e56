package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/rewrite"
)

// rewriteJob returns a job in the format of starter rewrite enqueue.
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

// Rewrites end to end: starter enqueues messages, a worker of stage rewrite processes
// them, criticizer starts and lists runs, and the backend fetches the results. The log of
// the worker holds no message text (rewrite 10).
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
	in.drainRewrites()
	for _, id := range jobs {
		result := in.output("starter", "rewrite", "result", id)
		if result == "\n" || strings.Contains(result, "never") {
			t.Errorf("result of job %s is %q", id, result)
		}
	}
	var states string
	in.queryRow(`select string_agg(to_status, ' ' order by id) from criticizer.rewrite_transitions where job_id = '`+jobs[1]+`'`, &states)
	if !strings.Contains(states, " batch_submitted ") || !strings.HasSuffix(states, " completed") {
		t.Errorf("a batch job went through %q", states)
	}
	var shown []struct {
		JobID  string `json:"job_id"`
		Status string `json:"status"`
	}
	if in.criticizerJSON(&shown, "rewrite", "jobs", "--status", "succeeded"); len(shown) != len(jobs) || shown[0].Status != "completed" {
		t.Errorf("listed are %+v, want %d completed jobs", shown, len(jobs))
	}
	in.execute(nil, "operator", "rewrite", "run") // with nothing to do
	waitFor(t, "the list to hold an idle run of the collector", func() bool {
		var runs []rewrite.Run
		in.criticizerJSON(&runs, "rewrite", "runs", "--limit", "100")
		return slices.ContainsFunc(runs, func(r rewrite.Run) bool { return r.Worker == rewrite.Collector && r.Claimed == 0 && r.Event != "" })
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
