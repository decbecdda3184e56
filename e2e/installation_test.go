// Package e2e tests the whole: the real worker and starter as processes, a
// real Postgres and Temporal server, and stand-ins for p4, the model and the
// mail server.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
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
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

var discard = slog.New(slog.DiscardHandler)

// bin holds the commands, built once for all tests.
var binDir string

// atOnce is how many tests run at a time, unless -parallel says otherwise. They
// wait for timers and retries more than they work, so it is more than a small
// machine has cores.
const parallelTests = "6"

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "criticizer-e2e-"); err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-o", binDir+"/", "../worker", "../starter", "../operator", "../p4/p4sim")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr // as make build
	if err := build.Run(); err != nil {
		panic(fmt.Sprintf("build the commands: %v", err))
	}
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// A rig is a Criticizer of one test.
type installation struct {
	t            *testing.T
	dir          string
	env          []string
	model        *llmsim.Server
	endpoint     string // of the model
	inbox        *inbox.Inbox
	mailProxy    *outageProxy // before the inbox; nil unless opened
	webhookProxy *outageProxy // before the webhook; nil unless opened
	webhook      *webhookServer
	namespace    temporalns.Namespace
	temporal     temporalns.Config
	beforeAnswer atomic.Pointer[func()] // runs before the model answers, if set
	database     *storetest.Database
	log          *syncBuffer
}

// newRig sets up everything but the worker. depot is what p4sim serves.
func newInstallation(t *testing.T, depot string) *installation {
	t.Helper()
	in := &installation{t: t, dir: t.TempDir(), database: storetest.New(t), log: &syncBuffer{}}
	in.namespace, in.temporal = temporalnstest.New(t)
	in.model = llmsim.New(llmsim.Config{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if run := in.beforeAnswer.Load(); run != nil {
			(*run)()
		}
		in.model.ServeHTTP(w, request)
	}))
	t.Cleanup(endpoint.Close)
	in.endpoint = endpoint.URL + "/v1"
	in.inbox = openInbox(t, in.path("mail"))
	in.allow("//depot/...")
	keyset, err := artifact.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	in.write("p4", 0o700, fmt.Sprintf("#!/bin/sh\nexport PATH=%s P4SIM_DEPOT=%s P4SIM_STATE=%s P4SIM_MAIL_DOMAIN=corp.test P4SIM_FAULT_FILE=%s P4SIM_LOG=%s\nexec %s \"$@\"\n",
		quote(os.Getenv("PATH")), quote(depot), quote(in.path("p4sim")), quote(in.path("p4fault")), quote(in.path("p4log")), quote(filepath.Join(binDir, "p4sim"))))
	in.write("criticizer.yaml", 0o600, fmt.Sprintf(`
temporal: {address: %q, namespace: %q}
starter: {spool_dir: %q}
p4: {command: %q, port: "p4sim:1666", user: criticizer, state_dir: %q, allowed_paths: ["//depot/..."]}
llm: {base_url: %q, model: llmsim-1}
mail: {provider: inbox, host: 127.0.0.1, port: %d, tls: none, from: "Criticizer <criticizer@corp.test>", inbox_url: %q, clean_to: everyone}
log: {format: json}
`, in.temporal.Address, in.temporal.Name, in.path("spool"), in.path("p4"), in.path("p4home"), in.endpoint, in.inbox.SMTPAddr().Port, in.inbox.URL()))
	in.env = append(os.Environ(),
		"CRITICIZER_CONFIG="+in.path("criticizer.yaml"),
		"CRITICIZER_DATABASE_URL="+in.database.URL.Reveal(),
		"CRITICIZER_REDACTION_KEY=a key of this test, long enough",
		"CRITICIZER_ARTIFACT_KEYSET="+keyset.Reveal(),
	)
	return in
}

// A transcript is what was said or sent, by several at once.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *syncBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Bytes is what was said so far.
func (l *syncBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

func (l *syncBuffer) String() string { return string(l.Bytes()) }

// Reset forgets it.
func (l *syncBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// openInbox serves an inbox that keeps its mail in dir until the test ends.
func openInbox(t *testing.T, dir string) *inbox.Inbox {
	t.Helper()
	box, err := inbox.Open(discard, inbox.Config{Dir: dir, SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- box.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("inbox: %v", err)
		}
	})
	return box
}

// allow puts an allow-list in force, as criticizer allowlist apply does.
func (in *installation) allow(paths ...string) {
	in.t.Helper()
	operator := in.database.Open(in.t, store.RoleOperator)
	if _, _, err := operator.ApplyAllowList(in.t.Context(), store.AllowList{Allowed: paths}, "e2e", "a test"); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) path(name string) string { return filepath.Join(in.dir, name) }

func (in *installation) write(name string, mode os.FileMode, body string) {
	in.t.Helper()
	writeFile(in.t, in.path(name), mode, body)
}

func writeFile(t *testing.T, path string, mode os.FileMode, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), mode); err != nil {
		t.Fatal(err)
	}
}

// startWorker runs a worker of all stages; the test stops it.
func (in *installation) startWorker(args ...string) *exec.Cmd {
	in.t.Helper()
	worker := exec.Command(filepath.Join(binDir, "worker"), args...)
	worker.Env, worker.Stdout, worker.Stderr = in.env, in.log, in.log
	if err := worker.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() {
		_ = worker.Process.Signal(os.Interrupt)
		_ = worker.Wait()
		if in.t.Failed() {
			in.t.Logf("worker's log:\n%s", in.log)
		}
	})
	return worker
}

// mails returns what the inbox holds for the changelist.
func (in *installation) mails(cl review.Changelist) []inbox.Entry {
	in.t.Helper()
	var page struct {
		Messages []inbox.Entry `json:"messages"`
	}
	in.getJSON("/api/messages?q="+url.QueryEscape(fmt.Sprintf("CL %d:", cl)), &page)
	return page.Messages
}

// raw returns one message as it was received.
func (in *installation) raw(id string) string {
	in.t.Helper()
	return string(in.get("/api/messages/" + id + "/raw"))
}

func (in *installation) getJSON(path string, v any) {
	in.t.Helper()
	if err := json.Unmarshal(in.get(path), v); err != nil {
		in.t.Fatalf("%s: %v", path, err)
	}
}

func (in *installation) get(path string) []byte {
	in.t.Helper()
	response, err := http.Get(in.inbox.URL() + path)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		in.t.Fatalf("%s: %s: %v", path, response.Status, err)
	}
	return body.Bytes()
}

// quote makes s one word of a shell command.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// history returns what Temporal has recorded of a run, or of the current one if
// runID is empty.
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

// patience is how long a test waits for what comes in seconds on an idle machine.
const testTimeout = 4 * time.Minute

// waitFor waits until done says that it came.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come within %s", what, testTimeout)
		}
	}
}
