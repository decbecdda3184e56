// Package e2e tests the whole product. Each test starts the real worker, starter and
// criticizer as processes, against a Postgres database and a Temporal namespace of its
// own. p4sim, llmsim and an inbox stand in for Perforce, the model and the mail server;
// they record requests and inject faults.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows/contract"
)

var discard = slog.New(slog.DiscardHandler)

// binDir holds the commands, built once for all tests.
var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "criticizer-e2e-"); err != nil {
		panic(err)
	}
	if err := buildCommands(binDir); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// An installation is everything that one test runs: a configuration, a database, a
// namespace, the stand-ins for servers, and the commands' environment.
type installation struct {
	t            testing.TB
	dir          string
	bin          string // folder of the commands
	env          []string
	model        *llmsim.Server
	endpoint     string // URL of the model
	inbox        *inbox.Inbox
	mailProxy    *outageProxy // nil unless proxyMail was called
	webhookProxy *outageProxy // nil unless configureWebhook was called
	webhook      *webhookServer
	namespace    temporal.Namespace
	temporal     temporal.Config
	beforeAnswer atomic.Pointer[func()] // runs before the model answers a prompt, if set
	database     *storetest.Database
	log          *syncBuffer
}

// newInstallation sets up everything but the worker. p4sim serves depot.
func newInstallation(tb testing.TB, depot string) *installation {
	tb.Helper()
	in := &installation{t: tb, dir: tb.TempDir(), bin: binDir, database: storetest.New(tb), log: &syncBuffer{}}
	in.namespace, in.temporal = temporaltest.New(tb, contract.Attributes()...)
	in.model = llmsim.New(llmsim.Config{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if run := in.beforeAnswer.Load(); run != nil && request.Method == http.MethodPost {
			(*run)()
		}
		in.model.ServeHTTP(w, request)
	}))
	tb.Cleanup(endpoint.Close)
	in.endpoint = endpoint.URL + "/v1"
	in.inbox = openInbox(tb, in.path("mail"))
	in.allow("//depot/...")
	writeP4(tb, in.path("p4"), binDir, "P4SIM_DEPOT="+depot, "P4SIM_STATE="+in.path("p4sim"), "P4SIM_MAIL_DOMAIN=corp.test",
		"P4SIM_FAULT_FILE="+in.path("p4fault"), "P4SIM_LOG="+in.path("p4log"))
	in.write("criticizer.yaml", 0o600, fmt.Sprintf(`
temporal: {address: %q, namespace: %q}
starter: {spool_dir: %q}
p4: {command: %q, port: "ssl:p4sim:1666", user: criticizer, state_dir: %q, allowed_paths: ["//depot/..."]}
llm: {base_url: %q, model: llmsim-1, verify: "off"}
mail: {server: "smtp+insecure://%s", from: "Criticizer <criticizer@corp.test>", clean_to: everyone, journal: {server: %q}}
`, in.temporal.Address, in.temporal.Name, in.path("spool"), in.path("p4"), in.path("p4home"), in.endpoint, in.inbox.SMTPAddr(), inboxAt(in.inbox)))
	in.env = append(os.Environ(),
		"CRITICIZER_CONFIG="+in.path("criticizer.yaml"),
		"CRITICIZER_DATABASE_URL="+in.database.URL.Reveal(),
		"CRITICIZER_REDACTION_KEY=a key of this test, long enough",
		// Older than the attempts that tests date back.
		"CRITICIZER_EVIDENCE_KEY=2026-01-01T00:00:00Z "+base64.StdEncoding.EncodeToString([]byte(rand.Text()+"123456")),
	)
	in.env = append(in.env, keysetVariables(tb)...)
	return in
}

// inboxAt returns the journal that an inbox is.
func inboxAt(b *inbox.Inbox) string { return strings.Replace(b.URL(), "http://", "inbox://", 1) }

// keysetVariables returns the variables with a keyset for each purpose.
func keysetVariables(tb testing.TB) (env []string) {
	tb.Helper()
	for _, purpose := range settings.KeysetPurposes {
		keyset, err := artifact.NewKeyset(artifact.KEK{})
		if err != nil {
			tb.Fatal(err)
		}
		env = append(env, "CRITICIZER_"+strings.ToUpper(purpose)+"_KEYSET="+keyset.Reveal())
	}
	return env
}

// A syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// Bytes returns a copy of what was written.
func (b *syncBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

func (b *syncBuffer) String() string { return string(b.Bytes()) }

// Reset empties the buffer.
func (b *syncBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// openInbox serves an inbox that keeps its mail in dir until the test ends.
func openInbox(tb testing.TB, dir string) *inbox.Inbox {
	tb.Helper()
	box, err := inbox.Open(discard, inbox.Config{Dir: dir, SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- box.Serve(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Errorf("inbox: %v", err)
		}
	})
	return box
}

// allow applies an allow list, as criticizer allowlist apply does.
func (in *installation) allow(paths ...string) { in.applyAllowList(store.AllowList{Allowed: paths}) }

func (in *installation) applyAllowList(list store.AllowList) {
	in.t.Helper()
	if _, _, err := in.database.Open(in.t, store.RoleOperator).ApplyAllowList(in.t.Context(), list, "e2e", "a test"); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) path(name string) string { return filepath.Join(in.dir, name) }

func (in *installation) write(name string, mode os.FileMode, body string) {
	in.t.Helper()
	writeFile(in.t, in.path(name), mode, body)
}

// inject has the model return errors.
func (in *installation) inject(faults ...llmsim.Fault) { in.model.Inject(faults...) }

// exec runs statements in the database as its owner.
func (in *installation) exec(statements ...string) {
	in.t.Helper()
	conn := in.database.Conn(in.t)
	for _, statement := range statements {
		if _, err := conn.Exec(in.t.Context(), statement); err != nil {
			in.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// queryRow reads one row of the database.
func (in *installation) queryRow(query string, columns ...any) {
	in.t.Helper()
	conn := in.database.Conn(in.t)
	defer func() { _ = conn.Close(in.t.Context()) }()
	if err := conn.QueryRow(in.t.Context(), query).Scan(columns...); err != nil {
		in.t.Fatalf("%s: %v", query, err)
	}
}

// countRows counts the rows of a table that meet a condition.
func (in *installation) countRows(table, where string) (n int) {
	in.t.Helper()
	in.queryRow("select count(*) from criticizer."+table+" where "+where, &n)
	return n
}

// waitForJobs waits until n jobs have ended, including dead-lettered ones.
func (in *installation) waitForJobs(n int) {
	in.t.Helper()
	waitFor(in.t, fmt.Sprintf("the end of %d jobs", n), func() bool { return in.countRows("jobs", "finished_at is not null") >= n })
}

// startWorker runs a worker of all stages until the test ends.
func (in *installation) startWorker(args ...string) *exec.Cmd {
	in.t.Helper()
	worker := exec.Command(filepath.Join(in.bin, "worker"), args...)
	worker.Env = in.env
	in.startProcess(worker)
	return worker
}

// startProcess starts a worker whose output goes to the installation's log, and stops it when
// the test ends.
func (in *installation) startProcess(worker *exec.Cmd) {
	in.t.Helper()
	worker.Stdout, worker.Stderr = in.log, in.log
	if err := worker.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() {
		_ = interrupt(worker)
		if in.t.Failed() {
			in.t.Logf("log of the worker:\n%s", in.log)
		}
	})
}

// kill ends a worker without giving it time to shut down.
func kill(worker *exec.Cmd) {
	_ = worker.Process.Kill()
	_ = worker.Wait()
}

// interrupt stops a worker as a deployment does and waits for its end.
func interrupt(worker *exec.Cmd) error {
	_ = worker.Process.Signal(os.Interrupt)
	return worker.Wait()
}

// mails returns the messages about a changelist.
func (in *installation) mails(cl review.Changelist) []inbox.Entry {
	in.t.Helper()
	return in.searchMails(fmt.Sprintf("CL %d:", cl))
}

func (in *installation) searchMails(text string) []inbox.Entry {
	in.t.Helper()
	var page struct {
		Messages []inbox.Entry `json:"messages"`
	}
	if err := json.Unmarshal(in.getInbox("/api/messages?q="+url.QueryEscape(text)), &page); err != nil {
		in.t.Fatal(err)
	}
	return page.Messages
}

// raw returns one message as it was received.
func (in *installation) raw(id string) string {
	in.t.Helper()
	return string(in.getInbox("/api/messages/" + id + "/raw"))
}

func (in *installation) getInbox(path string) []byte {
	in.t.Helper()
	status, body := httpGet(in.t, in.inbox.URL()+path)
	if status != http.StatusOK {
		in.t.Fatalf("%s: %d", path, status)
	}
	return []byte(body)
}

// history returns the events of a workflow run, of the current run if runID is empty.
func (in *installation) history(workflowID, runID string) []*historypb.HistoryEvent {
	in.t.Helper()
	var all []*historypb.HistoryEvent
	events := in.namespace.GetWorkflowHistory(in.t.Context(), workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			in.t.Fatal(err)
		}
		all = append(all, event)
	}
	return all
}
