package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// must runs a command, which succeeds with output that has the words.
func (b backend) must(t *testing.T, words []string, args ...string) string {
	t.Helper()
	out, err := b.run(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%v prints %q without %q", args, out, w)
		}
	}
	return out
}

// refuses runs a command, which fails with an error about the subject, of the command line
// if usage is set.
func (b backend) refuses(t *testing.T, usage bool, subject string, args ...string) {
	t.Helper()
	_, err := b.run(t, args...)
	if _, ofUsage := errors.AsType[cli.UsageError](err); err == nil || ofUsage != usage || !strings.Contains(err.Error(), subject) || operator.HintOf(err) == "" {
		t.Errorf("%v: %v with hint %q, want one about %q", args, err, operator.HintOf(err), subject)
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	lines := []map[string]any{jobFields(), with("not_before_at", time.Now().Add(time.Hour)), jobFields()}
	var ids []string
	for _, line := range lines {
		ids = append(ids, uuid.NewString())
		line["job_id"] = ids[len(ids)-1]
	}
	b.must(t, []string{"enqueued 3 jobs"}, "enqueue", "--file", writeJobs(t, lines...))
	if out := b.must(t, ids, "jobs"); strings.Index(out, ids[2]) > strings.Index(out, ids[0]) {
		t.Errorf("the newest job is not the first: %s", out)
	}
	b.must(t, []string{"the newest 1; --limit shows more"}, "jobs", "--limit", "1")
	b.must(t, []string{"no jobs\n"}, "jobs", "--status", "running") // rewrite 3: an alias
	b.refuses(t, true, `--status "done"`, "jobs", "--status", "done")
	b.refuses(t, true, `--request "1"`, "jobs", "--request", "1")

	b.must(t, []string{"is queued"}, "requeue", ids[1], "--reason", "T-1: the window is open")
	b.must(t, []string{"is canceled"}, "cancel", ids[2], "--reason", "T-2: withdrawn")
	b.refuses(t, false, "its status does not allow it", "cancel", ids[2], "--reason", "T-2")
	b.refuses(t, true, `"reason" not set`, "cancel", ids[0])
	b.refuses(t, false, "seems to contain a secret", "cancel", ids[0], "--reason", "password=hunter2-hunter2")
	b.refuses(t, true, "want a UUID", "show", "4711")
	b.refuses(t, true, "want a UUID", "result", "4711")

	var view struct {
		Status      rewrite.Status    `json:"status"`
		NotBeforeAt *time.Time        `json:"not_before_at"`
		Transitions []json.RawMessage `json:"transitions"`
	}
	testkit.NoError(t, json.Unmarshal([]byte(b.must(t, nil, "show", "--json", ids[2])), &view))
	if view.Status != rewrite.Canceled || len(view.Transitions) != 2 {
		t.Errorf("the canceled job: %+v", view)
	}
	b.must(t, []string{"queued, attempt 0 of 2", "en to pt-BR"}, "show", ids[1])
	b.must(t, []string{"canceled", "queued", "no open batches"}, "stats")
}

func TestBatches(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.must(t, []string{"no open batches\n"}, "stats")
	id := uuid.NewString()
	if _, err := b.db.Conn(t).Exec(t.Context(), `insert into complaint_rewrite.batches (batch_id, routing_decision, language_pair, requests, tokens, run_id)
		values ($1, '{"provider": "openai", "model": "m"}', '{"from": "en", "to": "en"}', 1, 1, gen_random_uuid())`, id); err != nil {
		t.Fatal(err)
	}
	b.must(t, []string{id, "submitting"}, "stats")
	b.refuses(t, false, "--reason is empty", "batch", "abandon", id, "--reason", " ")
	b.must(t, []string{"abandoned"}, "batch", "abandon", id, "--reason", "T-5: lost")
	b.refuses(t, false, "it has ended", "batch", "abandon", id, "--reason", "T-5: lost")
	b.must(t, []string{"no open batches\n"}, "stats")

	var canceled string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		canceled = r.Method + " " + r.URL.Path
		fmt.Fprint(w, `{"id": "batch_1", "status": "cancelling"}`)
	}))
	t.Cleanup(server.Close)
	b.env["COMPLAINT_REWRITE_OPENAI_BASE_URL"], b.env["COMPLAINT_REWRITE_ROUTE_MODEL"] = server.URL+"/v1", "m"
	b.env["COMPLAINT_REWRITE_OPENAI_API_KEY"], b.env["COMPLAINT_REWRITE_REDACTION_KEY"] = "a key of this test", "0123456789abcdef0123456789abcdef"
	b.refuses(t, false, "google", "batch", "cancel", "google", "batch_1")
	b.must(t, []string{"batch batch_1 is being canceled at openai"}, "batch", "cancel", "openai", "batch_1")
	if canceled != "POST /v1/batches/batch_1/cancel" {
		t.Errorf("the provider got %q", canceled)
	}
}

// Each worker has a schedule of its name, which can be triggered (rewrite 5).
func TestRuns(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	namespace, where := temporaltest.New(t)
	b.env["COMPLAINT_REWRITE_TEMPORAL_ADDRESS"], b.env["COMPLAINT_REWRITE_TEMPORAL_NAMESPACE"] = where.Address, where.Name
	b.refuses(t, false, "there is no schedule rewrite_batch_submitter", "run")
	b.refuses(t, true, `worker "unknown": want`, "run", "unknown")
	testkit.NoError(t, namespace.Schedule(t.Context(), time.Hour, false, &client.ScheduleWorkflowAction{
		ID: string(rewrite.AsyncLane), Workflow: string(rewrite.AsyncLane), TaskQueue: "none",
	}))
	b.must(t, []string{"rewrite_async: started\n"}, "run", "rewrite_async")
	b.must(t, []string{"rewrite_async: not started: a run of it is running\n"}, "run", "rewrite_async")
	calendar := client.ScheduleSpec{Calendars: []client.ScheduleCalendarSpec{{Hour: []client.ScheduleRange{{Start: 2}}}}, TimeZoneName: "Europe/Berlin"}
	handle := namespace.ScheduleClient().GetHandle(t.Context(), string(rewrite.AsyncLane))
	testkit.NoError(t, handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		in.Description.Schedule.Spec = &calendar
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}}))
	testkit.NoError(t, namespace.Schedule(t.Context(), time.Hour, false, &client.ScheduleWorkflowAction{
		ID: string(rewrite.AsyncLane), Workflow: string(rewrite.AsyncLane), TaskQueue: "none",
	}))
	if kept, err := handle.Describe(t.Context()); err != nil || len(kept.Schedule.Spec.Intervals) != 0 || len(kept.Schedule.Spec.Calendars) != 1 {
		t.Errorf("the calendar of an operator is replaced: %+v, %v", kept.Schedule.Spec, err)
	}
	b.must(t, []string{"no runs\n"}, "runs")
	queue := b.db.Open(t, store.RoleWorker)
	testkit.NoError(t, queue.SkipRun(t.Context(), db.SkipRunParams{RunID: uuid.NewString(), Worker: rewrite.Collector, MaxJobsPerRun: 25, Event: rewrite.Collector.Skip()}))
	b.must(t, []string{"rewrite_batch_collector skipped: no pending items"}, "runs")
	testkit.NoError(t, namespace.ScheduleClient().GetHandle(t.Context(), string(rewrite.AsyncLane)).Delete(t.Context()))
}

// A rotated keyset opens what the old one has encrypted.
func TestKeyset(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	file := filepath.Join(t.TempDir(), "keyset")
	testkit.NoError(t, os.WriteFile(file, []byte(b.must(t, nil, "keyset")), 0o600))
	b.env["COMPLAINT_REWRITE_KEYSET"] = b.must(t, nil, "keyset", file)
	order, err := json.Marshal(jobFields())
	testkit.NoError(t, err)
	if b.sealed(t, string(order)) == "" {
		t.Error("the rotated keyset encrypts nothing")
	}
	b.refuses(t, false, "none", "keyset", "/none")
}
