package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// TestCanaryOfRewrites plants fake secrets of every class in messages and preferences,
// rewrites the messages in single calls and batches while faults are injected, and then
// searches every byte that the product sent or stored: no raw text is in routing_decision
// (rewrite 4), in logs (rewrite 10) or in requests to the provider (security 9.5.1). Only
// encrypted data and the results that the backend fetches may hold them.
func TestCanaryOfRewrites(t *testing.T) {
	t.Parallel()
	planted := newCanaries(rand.New(rand.NewPCG(3, 4)), canaries)
	in := newInstallation(t, "")
	var sent syncBuffer
	worker := in.serveRewrites(in.recordRequests(&sent), "COMPLAINT_REWRITE_LOG_LEVEL=debug",
		"COMPLAINT_REWRITE_RUN_RETRY_BACKOFF_SECONDS=1", "COMPLAINT_REWRITE_TIMEOUT=2s",
		"COMPLAINT_REWRITE_REDACTION_EMAILS=true", "COMPLAINT_REWRITE_REDACTION_INTERNAL_IPS=true", "COMPLAINT_REWRITE_REDACTION_HOST_SUFFIXES=corp.internal")
	in.injectRewriteFaults()
	messages := plantMessages(planted)
	in.write("jobs.jsonl", 0o600, messagesFile(t, messages))
	var output bytes.Buffer
	output.WriteString(in.output("complaint-rewrite", "enqueue", "--json", "--file", in.path("jobs.jsonl")))
	in.drainRewrites()
	for _, args := range [][]string{{"runs", "--json"}, {"runs"}, {"jobs", "--json"}, {"jobs"}, {"stats"}, {"stats", "--json"}} {
		output.WriteString(in.output("complaint-rewrite", args...))
	}
	in.fetchResults(messages, &output)
	_ = interrupt(worker) // completes its log

	searchAll(t, planted, []sink{
		{"requests to the provider", sent.Bytes()},
		{"output of the commands", output.Bytes()},
		{"log of the worker", in.log.Bytes()},
		{"files", in.files("jobs.jsonl")},
		{"workflow histories", in.histories()},
		{"tables of Postgres", in.tables()},
	})
	// The absence of canaries proves nothing unless their context has arrived in both
	// modes and the faults have occurred.
	for _, marker := range []string{"harbour 0 ", "harbour 1 ", "kind words", "REDACTED", `form-data; name="file"`, `"custom_id"`} {
		if !bytes.Contains(sent.Bytes(), []byte(marker)) {
			t.Errorf("no request has %q: nothing was tested", marker)
		}
	}
	if hit := in.model.Stats().ByFault; len(hit) < 6 {
		t.Errorf("only the faults %v occurred: little was tested", hit)
	}
}

// recordRequests serves the model at another URL and records its requests.
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

// injectRewriteFaults has the provider fail, return invalid answers, lose batches and
// reject one message permanently.
func (in *installation) injectRewriteFaults() {
	in.t.Helper()
	in.inject([]llmsim.Fault{
		{Kind: llmsim.ContentPolicy, Match: "rejectable"},
		{Kind: llmsim.Unavailable, Times: 2}, {Kind: llmsim.Garbage, Times: 1}, {Kind: llmsim.BadSchema, Times: 1},
		{Kind: llmsim.LostPlaceholder, Times: 2}, {Kind: llmsim.MadePlaceholder, Times: 2},
		{Kind: llmsim.Unavailable, On: llmsim.Upload, Times: 1},
		{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 1},
		{Kind: llmsim.BrokenLines, On: llmsim.Batch, Times: 1},
	}...)
}

// A plantedMessage has canaries in its text, and one in its preferences.
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
			m.text += "This is rejectable.\n"
		}
		for _, c := range m.canaries {
			m.text += "\nFor the last time:\n\n" + c.text + "\n"
		}
		all = append(all, m)
	}
	return all
}

// messagesFile returns the file of jobs: every other job is for a batch.
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

// drainRewrites starts runs until all jobs have ended.
func (in *installation) drainRewrites() {
	in.t.Helper()
	const open = `select job_id || ' ' || status || ' ' || coalesce(last_error, '') from complaint_rewrite.jobs where status not in ('completed', 'failed')`
	var left []string
	drained := poll(testTimeout, time.Second, func() bool {
		if left = in.queryStrings(open); len(left) > 0 {
			in.execute(nil, "complaint-rewrite", "run") // fails before the worker has created the schedules
		}
		return len(left) == 0
	})
	if !drained {
		in.t.Fatalf("jobs are still open:\n%s", strings.Join(left, "\n"))
	}
}

// fetchResults fetches every result as the backend does: results contain the secrets
// again. It appends what criticizer shows of the jobs to output.
func (in *installation) fetchResults(messages []plantedMessage, output *bytes.Buffer) {
	in.t.Helper()
	for _, m := range messages {
		shown := in.output("complaint-rewrite", "show", m.jobID)
		output.WriteString(shown)
		if m.rejected {
			expect(in.t, "the job", shown, "failed", string(failure.ContentPolicy))
			continue
		}
		result := in.output("complaint-rewrite", "result", m.jobID)
		for _, c := range m.canaries {
			if !strings.Contains(result, c.secret) {
				in.t.Errorf("result of job %s lacks a secret of its message, planted as %q", m.jobID, c.text)
			}
		}
	}
}
