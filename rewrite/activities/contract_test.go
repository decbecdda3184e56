package activities

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	client "github.com/criticizer/criticizer/rewrite/provider"
)

// A worker executes no job that it has lost between the claim and the call (rewrite 7.1).
func TestLostJobIsNotExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Concurrency = 1
	ids := r.enqueue(t, 2, rewrite.Async)
	r.provider.answer = func(item rewrite.Item) (string, error) {
		r.edit(t, `update criticizer.rewrite_jobs set status = 'canceled', claim_token = null where status = 'processing' and job_id <> '`+item.JobID+`'`)
		return item.Text.String(), nil
	}
	r.must(t, rewrite.AsyncLane)
	if got := r.statuses(t); got[rewrite.Completed] != 1 || got[rewrite.Canceled] != 1 {
		t.Errorf("jobs are %v", got)
	}
	if n := r.provider.executed[ids[0]] + r.provider.executed[ids[1]]; n != 1 {
		t.Errorf("%d jobs were executed, want the one that was held", n)
	}
}

// Each run logs the required fields (rewrite 10).
func TestRunIsLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue(t, 1, rewrite.Async)
	r.must(t, rewrite.AsyncLane)
	for _, key := range []string{
		"run_id", "started_at", "finished_at", "max_jobs_per_run", "claimed_count", "succeeded_count", "failed_count",
		"requeued_count", "rate_limit_errors", "capacity_errors", "per_model",
	} {
		if !strings.Contains(r.log.String(), " "+key+"=") {
			t.Errorf("the log lacks %s", key)
		}
	}
}

// Each job of a batch has a trail and a final status of its own (rewrite 9).
func TestJobsOfABatchHaveTheirOwnTrails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 3, rewrite.Batch)
	r.must(t, rewrite.Submitter, rewrite.Collector)
	r.all(t, rewrite.Completed, ids)
	for _, id := range ids {
		var trail string
		noError(t, r.scan(`select string_agg(to_status, ' ' order by id) from criticizer.rewrite_transitions where job_id = '`+id+`'`, &trail))
		if trail != "queued processing batch_submitted completed" {
			t.Errorf("trail of job %s is %q", id, trail)
		}
	}
}

// The fake provider answers as the client of a provider does: a test with a fake that
// permits more proves nothing.
func TestFakeProviderBehavesAsTheClient(t *testing.T) {
	t.Parallel()
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret"), Emails: true})
	noError(t, err)
	server := httptest.NewServer(llmsim.New(llmsim.Config{}))
	t.Cleanup(server.Close)
	real, err := client.New(slog.New(slog.DiscardHandler), pipeline, client.Config{Timeout: 2 * time.Minute, Providers: map[string]client.Provider{
		"openai": {BaseURL: server.URL + "/v1", APIKey: secret.New("a key of this test")},
	}})
	noError(t, err)
	var items []rewrite.Item
	for range 3 {
		id := uuid.NewString()
		m, err := pipeline.Message(id, message)
		noError(t, err)
		items = append(items, rewrite.Item{
			JobID: id, Surface: rewrite.WeeklyHarmony, Strength: rewrite.FullReframe, Languages: rewrite.LanguagePair{From: "en", To: "en"},
			Model: "m", PromptVersion: "v1", Text: m.Text,
		})
	}
	fake := exerciseProvider(t, newFakeProvider(&rig{}), items)
	for i, want := range exerciseProvider(t, real, items) { // both have the same steps
		if fake[i] != want {
			t.Errorf("step %d of the fake is\n  %s, of the client\n  %s", i, fake[i], want)
		}
	}
}

func exerciseProvider(t *testing.T, p provider, items []rewrite.Item) (steps []string) {
	t.Helper()
	ctx, to, strange := t.Context(), decision(rewrite.Batch), decision(rewrite.Batch)
	strange.AdapterKind = "pigeon"
	note := func(what string, err error, seen ...any) {
		class := failure.Class("")
		if err != nil {
			class = failure.ClassOf(err)
		}
		steps = append(steps, fmt.Sprint(what, ": ", class, " ", seen))
	}
	answer, err := p.Rewrite(ctx, to, items[0])
	note("rewrite", err, answer.Text != "")
	note("check", p.Check(items[0], answer))
	note("check of nothing", p.Check(items[0], rewrite.Answer{}))
	_, err = p.Rewrite(ctx, strange, items[0])
	note("rewrite by no adapter", err)
	weight, err := p.Weigh(to, items[0])
	note("weigh", err, weight.Bytes > 0, weight.Tokens > 0)
	_, err = p.Weigh(strange, items[0])
	note("weigh for no adapter", err)

	file, err := p.Upload(ctx, to, items)
	note("upload", err, file != "")
	_, err = p.Create(ctx, to, "file-none", "key-0")
	note("create of no file", err)
	created, err := p.Create(ctx, to, file, "key-1")
	note("create", err, created.Status, time.Since(created.CreatedAt).Abs() < 10*time.Minute)
	for _, key := range []string{"key-1", "key-0"} {
		found, err := p.Find(ctx, to, key, file, created.CreatedAt.Add(-time.Hour))
		note("find "+key, err, len(found), len(found) == 1 && found[0].ID == created.ID)
	}
	ended, err := p.Poll(ctx, to, created.ID)
	note("poll", err, ended.Status, ended.ID == created.ID, ended.OutputFileID != "", ended.ErrorFileID)
	_, err = p.Poll(ctx, to, "batch-none")
	note("poll of no batch", err)
	lines, of := map[string]int{}, map[string]rewrite.Item{}
	for _, item := range items {
		of[item.JobID] = item
	}
	results := func(id string) error {
		return p.Results(ctx, to, id, func(l rewrite.Line) error {
			lines[l.JobID]++
			return errors.Join(l.Err, p.Check(of[l.JobID], l.Answer))
		})
	}
	note("results", results(ended.OutputFileID), len(lines), lines[items[0].JobID], lines[items[2].JobID])
	note("results of no file", results("file-none"))
	note("delete", p.Delete(ctx, to, ended.OutputFileID))
	note("results of a deleted file", results(ended.OutputFileID))
	note("delete of no file", p.Delete(ctx, to, "file-none"))
	note("cancel of no batch", p.Cancel(ctx, to, "batch-none"))
	return steps
}
