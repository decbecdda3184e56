package activities

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	client "github.com/criticizer/criticizer/rewrite/provider"
	"github.com/criticizer/criticizer/rewrite/store"
	queries "github.com/criticizer/criticizer/rewrite/store/db"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
	"github.com/criticizer/criticizer/store/artifact"
)

// A rig is the queue of one test in a real Postgres, with a simulated provider.
// A worker that reaches the moment named by crash panics.
type rig struct {
	db      *storetest.Database
	backend *store.Queue
	// scan reads one row as the superuser, exec changes rows.
	scan     func(query string, into any) error
	exec     func(statement string) error
	texts    *artifact.Store // messages and preferences
	results  *artifact.Store
	provider *editedProvider
	lying    provider              // instead of the other, if set
	standard rewrite.ExecutionMode // of jobs without a decision; async if empty
	log      *strings.Builder
	queue    *store.Queue // of all workers
	cfg      Config
	pipeline *redaction.Pipeline

	mu    sync.Mutex
	crash string
	begun map[string]bool // runs
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db := storetest.New(t)
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret"), Emails: true})
	testkit.NoError(t, err)
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	testkit.NoError(t, err)
	workers := db.Open(t, store.RoleWorker)
	texts, err := artifact.New(store.Texts{Queue: workers}, artifact.Config{Namespace: "message", Raw: true, Keyset: keyset, TTL: store.TTL})
	testkit.NoError(t, err)
	results, err := artifact.New(store.Texts{Queue: workers}, artifact.Config{Namespace: "result", Raw: true, Keyset: keyset, TTL: store.TTL})
	testkit.NoError(t, err)
	conn := db.Conn(t)
	r := &rig{
		db: db, backend: db.Open(t, ""), log: &strings.Builder{}, begun: map[string]bool{},
		pipeline: pipeline, texts: texts, results: results, queue: workers,
		cfg: Config{Run: rewrite.RunConfig{
			MaxJobsPerRun: 25, MaxRuntimeSeconds: 240, ClaimTimeoutSeconds: 600, RetryBackoffSeconds: []int{900, 7200},
		}, Limits: rewrite.BatchLimits{Requests: 50_000, Tokens: 2_000_000}, Concurrency: 4,
			CallTimeout: 2 * time.Minute},
	}
	r.scan = func(query string, into any) error { return conn.QueryRow(t.Context(), query).Scan(into) }
	r.exec = func(statement string) error {
		_, err := conn.Exec(t.Context(), statement)
		return err
	}
	r.provider = newEditedProvider(t, r)
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL}, string(store.RoleWorker))
	testkit.NoError(t, err)
	t.Cleanup(pool.Close)
	workers.Queries = queries.New(crashing{postgres.Classified(pool), r})
	return r
}

// stored returns the text of a result.
func (r *rig) stored(t *testing.T, ref string) string {
	t.Helper()
	id := strings.TrimPrefix(ref, "result:")
	var body []byte
	testkit.NoError(t, r.scan(`select body from complaint_rewrite.results where id = '`+id+`' limit 1`, &body))
	text, err := r.results.Open(id, body)
	testkit.NoError(t, err)
	return string(text)
}

// worker returns a worker of the rig, in a run.
func (r *rig) worker(t *testing.T, run string) *Activities {
	t.Helper()
	lg := slog.New(slog.NewTextHandler(lockedWriter{r}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var used provider = r.provider
	if r.lying != nil {
		used = r.lying
	}
	w := New(lg, Parts{
		Queue: r.queue, Messages: damagedTexts{r.texts}, Results: r.results, Pipeline: r.pipeline,
		Provider: used, Standard: decision(cmp.Or(r.standard, rewrite.Async)), Name: "worker on test",
	}, r.cfg)
	w.pause, w.runOf = time.Millisecond, func(context.Context) string { return run }
	return w
}

type lockedWriter struct{ r *rig }

func (l lockedWriter) Write(p []byte) (int, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.r.log.Write(p)
}

// killed is the panic of a crash.
type killed struct{}

// at marks a moment in which a worker can crash.
func (r *rig) at(moment string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.crash == moment {
		r.crash = ""
		panic(killed{})
	}
}

// run runs one attempt of one run and reports whether it was killed.
func (r *rig) run(t *testing.T, worker rewrite.Worker, runID string) (dead bool, err error) {
	t.Helper()
	w := r.worker(t, runID)
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			dead = true
		}
	}()
	if r.first(runID) { // a retry does not begin the run again
		if begun, err := w.BeginRun(t.Context(), worker); err != nil || !begun {
			return false, err
		}
	}
	work := map[rewrite.Worker]func(context.Context) error{
		rewrite.AsyncLane: w.ExecuteJobs, rewrite.Submitter: w.SubmitBatches, rewrite.Collector: w.CollectBatches,
	}[worker]
	if err := work(t.Context()); err != nil {
		return false, err
	}
	_, err = w.FinishRun(t.Context())
	return false, err
}

func (r *rig) first(runID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.begun[runID]
	r.begun[runID] = true
	return !known
}

// must executes one run per worker and fails unless it succeeds.
func (r *rig) must(t *testing.T, workers ...rewrite.Worker) {
	t.Helper()
	for _, worker := range workers {
		if dead, err := r.run(t, worker, uuid.NewString()); dead || err != nil {
			t.Fatalf("%s: killed %t, %v", worker, dead, err)
		}
	}
}

func decision(mode rewrite.ExecutionMode) rewrite.RoutingDecision {
	return rewrite.RoutingDecision{
		Provider: "openai", AdapterKind: rewrite.OpenAIResponses, Model: "m", PromptVersion: "v1", PolicyVersion: "p1", Mode: mode,
	}
}

const message = "You never clean! Write to ann@corp.example about it."

// enqueue creates jobs for the message and returns their ids.
func (r *rig) enqueue(t *testing.T, n int, mode rewrite.ExecutionMode, edit ...func(*rewrite.Order)) []string {
	t.Helper()
	return r.enqueueText(t, n, mode, message, edit...)
}

func (r *rig) enqueueText(t *testing.T, n int, mode rewrite.ExecutionMode, text string, edit ...func(*rewrite.Order)) []string {
	t.Helper()
	var orders []rewrite.SealedOrder
	textID, sealed, err := r.texts.Seal([]byte(text))
	testkit.NoError(t, err)
	for range n {
		route := decision(mode)
		order := rewrite.Order{
			ID: uuid.NewString(), RequestID: uuid.NewString(), Surface: rewrite.WeeklyHarmony, Strength: rewrite.FullReframe,
			Languages: rewrite.LanguagePair{From: "en", To: "en"}, RecipientUserID: uuid.NewString(),
			RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(), Routing: &route,
		}
		for _, e := range edit {
			e(&order)
		}
		orders = append(orders, rewrite.SealedOrder{Order: order, Text: rewrite.SealedText{ID: textID, Body: sealed}})
	}
	receipts, err := r.backend.Enqueue(t.Context(), orders)
	testkit.NoError(t, err)
	ids := make([]string, n)
	for i, receipt := range receipts {
		ids[i] = receipt.JobID
	}
	return ids
}

func (r *rig) job(t *testing.T, id string) rewrite.Job {
	t.Helper()
	job, err := r.backend.Job(t.Context(), id)
	testkit.NoError(t, err)
	return job
}

// statuses counts the jobs by status.
func (r *rig) statuses(t *testing.T) map[rewrite.Status]int {
	t.Helper()
	counts := map[rewrite.Status]int{}
	for _, status := range rewrite.Statuses() {
		if n := r.number(t, `select count(*) from complaint_rewrite.jobs where status = '`+string(status)+`'`); n > 0 {
			counts[status] = n
		}
	}
	return counts
}

// number reads one number.
func (r *rig) number(t *testing.T, query string) (n int) {
	t.Helper()
	testkit.NoError(t, r.scan(query, &n))
	return n
}

// edit changes rows without the store.
func (r *rig) edit(t *testing.T, statement string) {
	t.Helper()
	testkit.NoError(t, r.exec(statement))
}

// later ends every wait, lease and claim.
func (r *rig) later(t *testing.T) {
	t.Helper()
	r.edit(t, `update complaint_rewrite.jobs set not_before_at = null where status = 'queued'`)
	r.edit(t, `update complaint_rewrite.batches set leased_until = now() where leased_until is not null`)
	r.edit(t, `update complaint_rewrite.jobs set claimed_at = now() - interval '1 day' where status = 'processing'`)
}

// broken is the id of a text that was decrypted and cannot be decompressed.
const broken = "broken"

// damagedTexts are the stored texts and a broken one.
type damagedTexts struct{ *artifact.Store }

func (d damagedTexts) Get(ctx context.Context, of artifact.Owner, ref artifact.Ref) ([]byte, error) {
	if ref == "message:"+broken {
		return nil, failure.Errorf(failure.InvariantViolated, "decompress artifact %s", ref)
	}
	return d.Store.Get(ctx, of, ref)
}

// installation is the name of the client in the metadata of batches.
const installation = "00000000-0000-0000-0000-000000000001"

// newClient returns the client of the providers openai and other, which handler serves.
func newClient(t *testing.T, pipeline *redaction.Pipeline, handler http.Handler) *client.Rewriter {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	endpoint := client.Provider{BaseURL: server.URL + "/v1", APIKey: secret.New("a key of this test")}
	c, err := client.New(slog.New(slog.DiscardHandler), pipeline, client.Config{
		Timeout: 2 * time.Minute, MaxAnswerTokens: 4_000, Installation: installation, Providers: map[string]client.Provider{"openai": endpoint, "other": endpoint},
	})
	testkit.NoError(t, err)
	return c
}

// An editedProvider is the client of a simulated provider. It counts how often each job is
// executed: by a call, or by a created batch. A test can edit what the provider replies.
type editedProvider struct {
	provider
	rig *rig

	mu       sync.Mutex
	executed map[string]int
	files    map[string][]rewrite.Item // uploaded
	lines    map[string][]rewrite.Line // of ended batches, by file
	batches  map[string]*batch
	deleted  []string

	answer     func(rewrite.Item) (string, error) // default: that of the simulation
	createErr  error                              // returned after the batch was created
	findErr    error
	listed     bool // findErr comes after the batches
	notCreated bool
	pollErr    error
	onDone     func(*batch) // edits an ended batch
	running    bool         // batches do not end
	canceled   int
}

func newEditedProvider(t *testing.T, r *rig) *editedProvider {
	t.Helper()
	return &editedProvider{
		provider: newClient(t, r.pipeline, llmsim.New(llmsim.Config{})), rig: r, executed: map[string]int{},
		batches: map[string]*batch{}, files: map[string][]rewrite.Item{}, lines: map[string][]rewrite.Line{},
	}
}

type batch struct {
	rewrite.ProviderBatch
	items []rewrite.Item
}

// known replaces the version of the prompts by the one that the client has.
func known(to rewrite.RoutingDecision) rewrite.RoutingDecision {
	to.PromptVersion = "v1"
	return to
}

func (p *editedProvider) Rewrite(ctx context.Context, to rewrite.RoutingDecision, item rewrite.Item) (string, error) {
	p.rig.at("call before")
	answer, err := p.provider.Rewrite(ctx, known(to), item)
	if err != nil {
		return answer, err
	}
	p.mu.Lock()
	p.executed[item.JobID]++
	p.mu.Unlock()
	p.rig.at("call after")
	if p.answer != nil {
		answer, err = p.answer(item)
	}
	return answer, err
}

func (p *editedProvider) Weigh(to rewrite.RoutingDecision, item rewrite.Item) (int, error) {
	_, err := p.provider.Weigh(known(to), item)
	return 10, err
}

func (p *editedProvider) Upload(ctx context.Context, to rewrite.RoutingDecision, items []rewrite.Item) (string, error) {
	p.rig.at("upload before")
	id, err := p.provider.Upload(ctx, known(to), items)
	p.mu.Lock()
	p.files[id] = items
	p.mu.Unlock()
	p.rig.at("upload after")
	return id, err
}

func (p *editedProvider) Create(ctx context.Context, to rewrite.RoutingDecision, fileID, key string) (b rewrite.ProviderBatch, err error) {
	p.rig.at("create before")
	if !p.notCreated {
		if b, err = p.provider.Create(ctx, to, fileID, key); err != nil {
			return b, err
		}
		p.mu.Lock()
		p.batches[b.ID] = &batch{b, p.files[fileID]}
		for _, item := range p.files[fileID] {
			p.executed[item.JobID]++
		}
		p.mu.Unlock()
	}
	p.rig.at("create after")
	return b, p.createErr
}

func (p *editedProvider) Batches(ctx context.Context, to rewrite.RoutingDecision, since time.Time) ([]rewrite.ProviderBatch, error) {
	if p.findErr != nil && !p.listed {
		return nil, p.findErr
	}
	batches, err := p.provider.Batches(ctx, to, since)
	return batches, errors.Join(err, p.findErr)
}

// Poll reads the lines of a batch that has ended.
func (p *editedProvider) Poll(ctx context.Context, to rewrite.RoutingDecision, id string) (rewrite.ProviderBatch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batches[id]
	if p.pollErr != nil || p.running || b.Status.Final() {
		return b.ProviderBatch, p.pollErr
	}
	var err error
	if b.ProviderBatch, err = p.provider.Poll(ctx, to, id); err != nil {
		return b.ProviderBatch, err
	}
	err = p.provider.Results(ctx, to, b.OutputFileID, func(line rewrite.Line) error {
		i := slices.IndexFunc(b.items, func(item rewrite.Item) bool { return item.JobID == line.JobID })
		if p.answer != nil {
			line.Answer, line.Err = p.answer(b.items[i])
		}
		p.lines[b.OutputFileID] = append(p.lines[b.OutputFileID], line)
		return nil
	})
	if p.onDone != nil {
		p.onDone(b)
	}
	return b.ProviderBatch, err
}

func (p *editedProvider) Results(_ context.Context, _ rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error {
	p.mu.Lock()
	lines, ok := p.lines[fileID]
	p.mu.Unlock()
	if !ok {
		return failure.Errorf(failure.NotFound, "no file %s", fileID)
	}
	for _, line := range lines {
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

func (p *editedProvider) Cancel(ctx context.Context, to rewrite.RoutingDecision, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canceled++
	return p.provider.Cancel(ctx, to, id)
}

func (p *editedProvider) Delete(ctx context.Context, to rewrite.RoutingDecision, fileID string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted = append(p.deleted, fileID)
	return p.provider.Delete(ctx, to, fileID)
}

// crashing are the statements of a queue, before and after each of which a worker can crash.
type crashing struct {
	queries.DBTX
	r *rig
}

var statement = regexp.MustCompile(`^-- name: (\w+)`)

func (c crashing) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	name := statement.FindStringSubmatch(sql)[1]
	c.r.at(name + " before")
	defer c.r.at(name + " after")
	return c.DBTX.Exec(ctx, sql, args...)
}

func (c crashing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	name := statement.FindStringSubmatch(sql)[1]
	c.r.at(name + " before")
	rows, err := c.DBTX.Query(ctx, sql, args...)
	defer func() {
		if p := recover(); p != nil {
			rows.Close() // the connection is used again
			panic(p)
		}
	}()
	c.r.at(name + " after")
	return rows, err
}
