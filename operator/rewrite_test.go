package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

// enqueueRewrites makes jobs, the second of which waits for its time, and
// returns their ids.
func (s *environment) enqueueRewrites() []string {
	s.t.Helper()
	later := time.Now().Add(time.Hour)
	var orders []rewrite.Order
	var texts []rewrite.Sealed
	for i := range 3 {
		orders = append(orders, rewrite.Order{
			JobID: uuid.NewString(), RequestID: uuid.NewString(), Surface: rewrite.OtherSurface, Strength: rewrite.LightTouch,
			Languages: rewrite.LanguagePair{From: "en", To: "de"}, RecipientUserID: uuid.NewString(),
			RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(),
		})
		texts = append(texts, rewrite.Sealed{Text: rewrite.SealedText{ID: strings.Repeat("a", 64), Body: []byte("x")}})
		if i == 1 {
			orders[i].NotBeforeAt = &later
		}
	}
	receipts, err := s.database.Open(s.t, store.RoleBackend).Rewrites().Enqueue(s.t.Context(), orders, texts)
	testkit.NoError(s.t, err)
	var ids []string
	for _, r := range receipts {
		ids = append(ids, r.JobID)
	}
	return ids
}

func TestRewriteJobs(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	ids := s.enqueueRewrites()
	contains(t, s.must("rewrite", "jobs"), ids[2], ids[1], ids[0])                           // the newest first
	if out := s.must("rewrite", "jobs", "--status", "running"); out != "no rewrite jobs\n" { // rewrite 3: an alias
		t.Errorf("processing jobs: %s", out)
	}
	s.refuses(s.criticizer("rewrite", "jobs", "--status", "done"), 2, `--status "done"`)
	s.refuses(s.criticizer("rewrite", "jobs", "--limit", "0"), 2, `--limit "0"`)

	contains(t, s.must("rewrite", "requeue", ids[1], "--reason", "T-1: the window is open"), "is queued")
	contains(t, s.must("rewrite", "cancel", ids[2], "--reason", "T-2: withdrawn"), "is canceled")
	s.refuses(s.criticizer("rewrite", "cancel", ids[2], "--reason", "T-2"), 1, "it is canceled, which is final")
	s.refuses(s.criticizer("rewrite", "requeue", uuid.NewString(), "--reason", "T-2"), 1, "does not exist")
	s.refuses(s.criticizer("rewrite", "cancel", ids[0]), 1, "--reason is empty")
	s.refuses(s.criticizer("rewrite", "show", "4711"), 2, "want a UUID")

	var view struct {
		Status      rewrite.Status    `json:"status"`
		NotBeforeAt *time.Time        `json:"not_before_at"`
		Transitions []json.RawMessage `json:"transitions"`
	}
	testkit.NoError(t, json.Unmarshal([]byte(s.must("rewrite", "show", "--json", ids[2])), &view))
	if view.Status != rewrite.Canceled || len(view.Transitions) != 2 {
		t.Errorf("the canceled job: %+v", view)
	}
	contains(t, s.must("rewrite", "show", ids[1]), "queued, attempt 0 of 2", "en to de")
	contains(t, s.must("rewrite", "stats"), "canceled", "queued", "no open batches")
}

func TestRewriteBatches(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	if out := s.must("rewrite", "batch", "list"); out != "no batches\n" {
		t.Error(out)
	}
	queue, id := s.database.Open(t, store.RoleRewrite).Rewrites(), uuid.NewString()
	err := queue.BeginSubmission(t.Context(), rewrite.NewClaim(uuid.NewString(), "w"), rewrite.Submission{ID: id, Tokens: 1}, nil, time.Minute)
	if err == nil {
		t.Error("a batch without jobs was recorded")
	}
	if _, err := s.database.Conn(t).Exec(t.Context(), `insert into criticizer.rewrite_batches (batch_id, routing_decision, language_pair, lane, requests, tokens, run_id)
		values ($1, '{"provider": "openai", "model": "m"}', '{"from": "en", "to": "en"}', 'same_language', 1, 1, gen_random_uuid())`, id); err != nil {
		t.Fatal(err)
	}
	contains(t, s.must("rewrite", "batch", "list"), id, "submitting")
	contains(t, s.must("rewrite", "batch", "show", id), id, "openai m")
	s.refuses(s.criticizer("rewrite", "batch", "abandon", id), 1, "--reason is empty")
	contains(t, s.must("rewrite", "batch", "abandon", id, "--reason", "T-5: lost"), "abandoned")
	s.refuses(s.criticizer("rewrite", "batch", "abandon", id, "--reason", "T-5: lost"), 1, "it has ended")
	var batches []rewrite.Submission
	if err := json.Unmarshal([]byte(s.must("rewrite", "batch", "list", "--all", "--json")), &batches); err != nil || len(batches) != 1 || batches[0].State != rewrite.Abandoned {
		t.Errorf("batches are %+v, %v", batches, err)
	}
	s.refuses(s.criticizer("rewrite", "batch", "show", uuid.NewString()), 1, "does not exist")
}

func TestRewriteRuns(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.refuses(s.criticizer("rewrite", "run"), 1, "there is no schedule rewrite_batch_submitter")
	s.refuses(s.criticizer("rewrite", "run", "unknown"), 2, `worker "unknown": want`)
	every := map[rewrite.Worker]time.Duration{rewrite.Submitter: time.Hour, rewrite.Collector: time.Hour, rewrite.AsyncLane: time.Hour}
	testkit.NoError(t, s.runs.ScheduleRewrites(t.Context(), every))
	if out := s.must("rewrite", "run", "rewrite_async"); out != "triggered: rewrite_async\n" {
		t.Error(out)
	}
	if out := s.must("rewrite", "runs"); out != "no runs\n" {
		t.Error(out)
	}
	queue := s.database.Open(t, store.RoleRewrite).Rewrites()
	testkit.NoError(t, queue.SkipRun(t.Context(), uuid.NewString(), rewrite.Collector, 25))
	contains(t, s.must("rewrite", "runs", "--worker", "rewrite_batch_collector"), "rewrite_batch_collector skipped: no pending items")
	for worker := range every {
		if err := s.runs.ScheduleClient().GetHandle(t.Context(), string(worker)).Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The doctor is sure of a model only if the provider lists it, and refuses runs whose
// claims expire during a call.
func TestDoctorOfRewrites(t *testing.T) {
	t.Parallel()
	i := installation{cfg: &settings.Config{}}
	i.cfg.Rewrite.Route = settings.RewriteRoute{Provider: "openai", Model: "small", FullReframeModel: "large"}
	for _, tt := range []struct {
		of     string
		models []string
		want   checkStatus
	}{
		{"openai", []string{"large", "small"}, statusOK},
		{"openai", []string{"small"}, statusWarn},
		{"openai", nil, statusWarn},
		{"other", nil, statusOK}, // no route names it
	} {
		if got := i.provider(tt.of, tt.models, nil); got.Status != tt.want {
			t.Errorf("%s lists %v: %+v, want %s", tt.of, tt.models, got, tt.want)
		}
	}
	i.cfg.Redaction.Key = secret.New("a key for tests, not a secret")
	i.cfg.Rewrite.Timeout, i.cfg.Rewrite.Run = 5*time.Minute, settings.RewriteRun{Profile: "dev"}
	if got := i.rewrites(t.Context()); len(got) != 1 || got[0].Status != statusFail {
		t.Errorf("claims of 300 s, runs of 120 s, calls of 300 s: %+v", got)
	}
}
