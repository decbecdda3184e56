package rewritechaos

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

// A rig is a queue of its own with two workers and a provider behind a trap.
type rig struct {
	t        *testing.T
	database *storetest.Database
	backend  store.Rewrites
	// scan reads the one value of a query into to.
	scan      func(to any, query string, args ...any) error
	namespace temporalns.Namespace
	keyset    secret.Value
	provider  *llmsim.Server
	trap      *trap
	crew      *crew
}

func newRig(t *testing.T, jobsPerRun int, sim llmsim.Config) *rig {
	t.Helper()
	r := &rig{t: t, database: storetest.New(t), provider: llmsim.New(sim)}
	conn := r.database.Conn(t)
	r.scan = func(to any, query string, args ...any) error {
		return conn.QueryRow(t.Context(), query, args...).Scan(to)
	}
	r.backend = r.database.Open(t, store.RoleBackend).Rewrites()
	in, where := temporalnstest.New(t)
	r.namespace = in
	var err error
	if r.keyset, err = artifact.NewKeyset(); err != nil {
		t.Fatal(err)
	}
	r.trap = &trap{provider: r.provider, strike: func() { r.crew.kill() }}
	server := httptest.NewServer(r.trap)
	t.Cleanup(server.Close)
	r.crew = newCrew(t, 2, append(os.Environ(),
		databaseVariable+"="+named(t, r.database.URL.Reveal()),
		temporalVariable+"="+where.Address+" "+where.Name,
		modelVariable+"="+server.URL,
		keysetVariable+"="+r.keyset.Reveal(),
		jobsVariable+"="+fmt.Sprint(jobsPerRun),
	))
	return r
}

// workersName is how workers call themselves at the database.
const workersName = "rewritechaos worker"

func named(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", workersName)
	u.RawQuery = q.Encode()
	return u.String()
}

// A captured blob is a sealed text on its way to the queue.
type captured struct{ rewrite.SealedText }

func (c *captured) PutBlob(_ context.Context, id string, body []byte, _ time.Duration) error {
	c.ID, c.Body = id, body
	return nil
}

func (*captured) Blob(context.Context, string) ([]byte, error) { return nil, nil }

func (r *rig) seal(text string) rewrite.SealedText {
	r.t.Helper()
	var c captured
	s, err := artifact.New(&c, review.NamespaceRewrite, r.keyset, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := s.Put(r.t.Context(), []byte(text)); err != nil {
		r.t.Fatal(err)
	}
	return c.SealedText
}

// open returns the text of a completed job.
func (r *rig) result(job string) string {
	r.t.Helper()
	sealed, err := r.backend.Result(r.t.Context(), job)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := artifact.New(kept{sealed}, review.NamespaceRewrite, r.keyset, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := s.Get(r.t.Context(), review.ArtifactRef("rewrite:"+sealed.ID))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// kept is one sealed text as the queue has it.
type kept struct{ rewrite.SealedText }

func (kept) PutBlob(context.Context, string, []byte, time.Duration) error { return nil }

func (k kept) Blob(context.Context, string) ([]byte, error) { return k.Body, nil }

// enqueue makes n jobs of a mode and returns their ids.
func (r *rig) enqueue(n int, mode rewrite.ExecutionMode) []string {
	r.t.Helper()
	var ids []string
	for chunk := range slices.Chunk(make([]struct{}, n), 500) {
		orders, sealed := make([]rewrite.Order, len(chunk)), make([]rewrite.Sealed, len(chunk))
		for i := range orders {
			to := decision(mode)
			orders[i] = rewrite.Order{
				RequestID: uuid.NewString(), Surface: rewrite.DirectMessage, Strength: rewrite.LightTouch,
				Languages: rewrite.LanguagePair{From: "en", To: "en"}, RecipientUserID: uuid.NewString(),
				RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(), MaxAttempts: 50, Routing: &to,
			}
			sealed[i].Text = r.seal("You never write to ann@corp.example about " + orders[i].RequestID + "!")
		}
		receipts, err := r.backend.Enqueue(r.t.Context(), orders, sealed)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, receipt := range receipts {
			ids = append(ids, receipt.JobID)
		}
	}
	return ids
}

// drain starts runs of every worker, two at a time, until no job is open.
func (r *rig) drain(patience time.Duration) {
	r.t.Helper()
	begun := time.Now()
	for number := 0; r.open() > 0; number++ {
		if time.Since(begun) > patience {
			r.t.Fatalf("jobs are still open after %s:\n%s", patience, r.states())
		}
		for _, w := range rewrite.Workers() {
			// An error says that it is running: two of a kind are enough.
			_, _ = r.namespace.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{
				ID: fmt.Sprintf("%s-%d", w, number%2), TaskQueue: activities.Queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
			}, string(w))
		}
		time.Sleep(time.Second)
	}
}

func (r *rig) open() int {
	r.t.Helper()
	return r.number(`select count(*) from criticizer.rewrite_jobs where status not in ('completed', 'failed', 'canceled')`)
}

func (r *rig) number(query string, args ...any) (n int) {
	r.t.Helper()
	if err := r.scan(&n, query, args...); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// states is what the jobs are in and why, and the batches.
func (r *rig) states() string {
	var jobs, batches string
	err := errors.Join(
		r.scan(&jobs, `select string_agg(format('%s %s attempts %s: %s', n, status, attempt_count, last_error), E'\n') from (
			select count(*) n, status, attempt_count, last_error from criticizer.rewrite_jobs group by 2, 3, 4) s`),
		r.scan(&batches, `select coalesce(string_agg(format('batch %s %s: %s', batch_id, state, provider_status), E'\n'), '')
			from criticizer.rewrite_batches where state in ('submitting', 'submitted')`))
	return fmt.Sprintf("%s\n%s\n%v", jobs, batches, err)
}
