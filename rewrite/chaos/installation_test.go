package chaos

import (
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
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
	"github.com/criticizer/criticizer/store/artifact"
)

// An installation is a queue with two workers and a provider behind a breakpoint.
type installation struct {
	t        *testing.T
	database *storetest.Database
	backend  *store.Queue
	// scan reads a query with one value.
	scan       func(to any, query string, args ...any) error
	namespace  temporal.Namespace
	keyset     secret.Value
	provider   *llmsim.Server
	breakpoint *breakpoint
	workers    *supervisor
}

func newInstallation(t *testing.T, jobsPerRun int, sim llmsim.Config) *installation {
	t.Helper()
	in := &installation{t: t, database: storetest.New(t), provider: llmsim.New(sim)}
	conn := in.database.Conn(t)
	in.scan = func(to any, query string, args ...any) error {
		return conn.QueryRow(t.Context(), query, args...).Scan(to)
	}
	in.backend = in.database.Open(t, store.RoleBackend)
	ns, where := temporaltest.New(t)
	in.namespace = ns
	var err error
	if in.keyset, err = artifact.NewKeyset(artifact.KEK{}); err != nil {
		t.Fatal(err)
	}
	in.breakpoint = &breakpoint{provider: in.provider, action: func() { in.workers.kill() }}
	server := httptest.NewServer(in.breakpoint)
	t.Cleanup(server.Close)
	in.workers = newSupervisor(t, 2, append(os.Environ(),
		databaseVariable+"="+withApplicationName(t, in.database.URL.Reveal()),
		temporalVariable+"="+where.Address+" "+where.Name,
		modelVariable+"="+server.URL,
		keysetVariable+"="+in.keyset.Reveal(),
		jobsVariable+"="+fmt.Sprint(jobsPerRun),
	))
	return in
}

// workersName is the application name of workers in the database.
const workersName = "rewritechaos worker"

func withApplicationName(t *testing.T, database string) string {
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

// texts encrypts and decrypts the texts of a namespace.
func (in *installation) texts(namespace artifact.Namespace) *artifact.Store {
	in.t.Helper()
	s, err := artifact.New(store.Texts{}, artifact.Config{Namespace: namespace, Keyset: in.keyset, TTL: time.Hour})
	if err != nil {
		in.t.Fatal(err)
	}
	return s
}

func (in *installation) seal(text string) (sealed rewrite.SealedText) {
	in.t.Helper()
	var err error
	if sealed.ID, sealed.Body, err = in.texts("message").Seal([]byte(text)); err != nil {
		in.t.Fatal(err)
	}
	return sealed
}

// result returns the text of a completed job.
func (in *installation) result(job string) string {
	in.t.Helper()
	sealed, err := in.backend.Result(in.t.Context(), job)
	if err != nil {
		in.t.Fatal(err)
	}
	text, err := in.texts("result").Open(sealed.ID, sealed.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return string(text)
}

// enqueue adds n jobs of a mode and returns their IDs.
func (in *installation) enqueue(n int, mode rewrite.ExecutionMode) []string {
	in.t.Helper()
	var ids []string
	for chunk := range slices.Chunk(make([]struct{}, n), 500) {
		orders := make([]rewrite.SealedOrder, len(chunk))
		for i := range orders {
			to := decision(mode)
			order := rewrite.Order{
				RequestID: uuid.NewString(), Surface: rewrite.DirectMessage, Strength: rewrite.LightTouch,
				Languages: rewrite.LanguagePair{From: "en", To: "en"}, RecipientUserID: uuid.NewString(),
				RecipientSnapshotID: uuid.NewString(), RecipientPreferenceSnapshotID: uuid.NewString(), MaxAttempts: 50, Routing: &to,
			}
			orders[i] = rewrite.SealedOrder{Order: order, Text: in.seal("You never write to ann@corp.example about " + order.RequestID + "!")}
		}
		receipts, err := in.backend.Enqueue(in.t.Context(), orders)
		if err != nil {
			in.t.Fatal(err)
		}
		for _, receipt := range receipts {
			ids = append(ids, receipt.JobID)
		}
	}
	return ids
}

// drain starts two runs of every worker at a time until all jobs have ended.
func (in *installation) drain(timeout time.Duration) {
	in.t.Helper()
	begun := time.Now()
	for number := 0; in.open() > 0; number++ {
		if time.Since(begun) > timeout {
			in.t.Fatalf("jobs are still open after %s:\n%s", timeout, in.describeJobs())
		}
		for _, w := range rewrite.Workers() {
			// An error means that the run is still in progress.
			_, _ = in.namespace.ExecuteWorkflow(in.t.Context(), client.StartWorkflowOptions{
				ID: fmt.Sprintf("%s-%d", w, number%2), TaskQueue: activities.Queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
			}, string(w))
		}
		time.Sleep(time.Second)
	}
}

func (in *installation) open() int {
	in.t.Helper()
	return in.number(`select count(*) from complaint_rewrite.jobs where status not in ('completed', 'failed', 'canceled')`)
}

func (in *installation) number(query string, args ...any) (n int) {
	in.t.Helper()
	if err := in.scan(&n, query, args...); err != nil {
		in.t.Fatal(err)
	}
	return n
}

// describeJobs describes the states of jobs and open batches.
func (in *installation) describeJobs() string {
	var jobs, batches string
	err := errors.Join(
		in.scan(&jobs, `select string_agg(format('%s %s attempts %s: %s', n, status, attempt_count, last_error), E'\n') from (
			select count(*) n, status, attempt_count, last_error from complaint_rewrite.jobs group by 2, 3, 4) s`),
		in.scan(&batches, `select coalesce(string_agg(format('batch %s %s: %s', batch_id, state, provider_status), E'\n'), '')
			from complaint_rewrite.batches where state in ('submitting', 'submitted')`))
	return fmt.Sprintf("%s\n%s\n%v", jobs, batches, err)
}
