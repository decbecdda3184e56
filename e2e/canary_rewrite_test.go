package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/llm/llmsim"
)

// TestCanaryOfRewrites plants fake secrets of every class in messages and in the
// preferences of their recipients, has them rewritten singly and in batches
// while things fail, and then searches every byte that left or stayed (queue 4:
// no raw text in routing_decision; queue 10: none in logs; security 9.5.1). Only
// what is encrypted may hold them, and what the backend fetches of it.
func TestCanaryOfRewrites(t *testing.T) {
	t.Parallel()
	planted := newCanaries(rand.New(rand.NewPCG(3, 4)), canaries)
	in := newInstallation(t, "")
	var sent syncBuffer
	in.env = append(in.env, "CRITICIZER_LOG_LEVEL=debug", "CRITICIZER_REWRITE_OPENAI_BASE_URL="+in.recordRequests(&sent), "CRITICIZER_REWRITE_OPENAI_API_KEY=a key of this test",
		"CRITICIZER_REWRITE_ROUTE_MODEL=llmsim-1", "CRITICIZER_REWRITE_RUN_RETRY_BACKOFF_SECONDS=1", "CRITICIZER_REWRITE_BATCH_LEASE=5s",
		"CRITICIZER_REDACTION_EMAILS=true", "CRITICIZER_REDACTION_INTERNAL_IPS=true", "CRITICIZER_REDACTION_HOST_SUFFIXES=corp.internal")
	in.injectRewriteFaults()
	messages := plantMessages(planted)
	in.write("jobs.jsonl", 0o600, messagesFile(t, messages))
	var output bytes.Buffer
	output.WriteString(in.output("starter", "rewrite", "enqueue", "--json", "--file", in.path("jobs.jsonl")))
	worker := in.startWorker("--stages", "rewrite")
	in.drainRewrites()
	for _, args := range [][]string{{"runs", "--json"}, {"runs"}, {"jobs", "--json"}, {"jobs"}, {"stats"}, {"stats", "--json"}} {
		output.WriteString(in.output("operator", append([]string{"rewrite"}, args...)...))
	}
	in.fetchResults(messages, &output)
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // its log is complete

	searchAll(t, planted, []sink{
		{"requests to the provider", sent.Bytes()},
		{"output of the commands", output.Bytes()},
		{"log of the worker", in.log.Bytes()},
		{"files", in.files("jobs.jsonl")},
		{"workflow histories", in.histories()},
		{"tables of Postgres", in.tables()},
	})
	// Silence is no proof: what surrounds the canaries must have arrived, by
	// both ways, and every kind of fault must have hit.
	for _, marker := range []string{"harbour 0 ", "harbour 1 ", "kind words", "REDACTED", `form-data; name="file"`, `"custom_id"`} {
		if !bytes.Contains(sent.Bytes(), []byte(marker)) {
			t.Errorf("the provider was never sent %s: nothing was tested", marker)
		}
	}
	if hit := in.model.Stats().ByFault; len(hit) < 6 {
		t.Errorf("faults that hit are %v: little was tested", hit)
	}
}

// recordAll serves the model at another URL, whose requests are recorded.
func (in *installation) recordRequests(to io.Writer) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // the client went away
		}
		fmt.Fprintf(to, "%s %s %s\n%s\n", request.Method, request.URL, request.Header, body)
		request.Body = io.NopCloser(bytes.NewReader(body))
		in.model.ServeHTTP(w, request)
	}))
	in.t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// breakRewrites has the provider fail, answer nonsense, lose what it was given
// and refuse one message for good.
func (in *installation) injectRewriteFaults() {
	in.t.Helper()
	for _, f := range []llmsim.Fault{
		{Kind: llmsim.ContentPolicy, Match: "doomed"},
		{Kind: llmsim.Unavailable, Times: 2}, {Kind: llmsim.Garbage, Times: 1}, {Kind: llmsim.BadSchema, Times: 1},
		{Kind: llmsim.LostPlaceholder, Times: 2}, {Kind: llmsim.MadePlaceholder, Times: 2},
		{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 1},
		{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 1},
		{Kind: llmsim.BrokenLines, On: llmsim.Batch, Times: 1},
	} {
		if err := in.model.Inject(f); err != nil {
			in.t.Fatal(err)
		}
	}
}

// A plantedMessage holds canaries in its text, and one in its preferences.
type plantedMessage struct {
	jobID, text, preference string
	canaries                []canary // of the text
	rejected                bool
}

// plantMessages distributes the canaries over messages.
func plantMessages(planted []canary) []plantedMessage {
	const perMessage = 5
	var all []plantedMessage
	for some := range slices.Chunk(planted, perMessage) {
		m := plantedMessage{jobID: uuid.NewString(), canaries: some[1:], rejected: len(all) == 3, preference: "kind words, as in " + some[0].text}
		m.text = fmt.Sprintf("You never settle the accounts of harbour %d and I am tired of it!\n", len(all))
		if m.rejected {
			m.text += "We are doomed.\n"
		}
		for _, c := range m.canaries {
			m.text += "\nFor the last time:\n\n" + c.text + "\n"
		}
		all = append(all, m)
	}
	return all
}

// messagesFile is the file of jobs, every other of which is for a batch.
func messagesFile(t *testing.T, messages []plantedMessage) string {
	t.Helper()
	var file bytes.Buffer
	for i, m := range messages {
		job := rewriteJob(m.text, []string{"async", "batch"}[i%2])
		job["job_id"], job["max_attempts"], job["preferences"] = m.jobID, 20, map[string]string{"tone": m.preference}
		line, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(line, '\n'))
	}
	return file.String()
}

// drainRewrites starts runs until no job is open.
func (in *installation) drainRewrites() {
	in.t.Helper()
	const open = `select job_id || ' ' || status || ' ' || coalesce(last_error, '') from criticizer.rewrite_jobs where status not in ('completed', 'failed')`
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Second) {
		left := in.queryStrings(open)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			in.t.Fatalf("jobs are still open:\n%s", strings.Join(left, "\n"))
		}
		run := exec.CommandContext(in.t.Context(), filepath.Join(binDir, "operator"), "rewrite", "run")
		run.Env = in.env
		_ = run.Run() // there may be no schedule yet
	}
}

// fetchResults fetches every result as the backend does: there, and only there,
// the secrets are back. What is said of the jobs is added to said.
func (in *installation) fetchResults(messages []plantedMessage, output *bytes.Buffer) {
	in.t.Helper()
	for _, m := range messages {
		shown := in.output("operator", "rewrite", "show", m.jobID)
		output.WriteString(shown)
		if m.rejected {
			expect(in.t, "the result", shown, "failed", "CONTENT_POLICY")
			continue
		}
		result := in.output("starter", "rewrite", "result", m.jobID)
		for _, c := range m.canaries {
			if !strings.Contains(result, c.secret) {
				in.t.Errorf("result of job %s lacks a secret of its message, planted as %q", m.jobID, c.text)
			}
		}
	}
}
