package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/artifact"
	"github.com/criticizer/criticizer/mail/mailhost"
	"github.com/criticizer/criticizer/namespace"
	"github.com/criticizer/criticizer/namespace/namespacetest"
	"github.com/criticizer/criticizer/secret"
	"github.com/criticizer/criticizer/store/storetest"
)

// A rig is an installation of its own: namespace, database, depot, recipients
// and a worker that is started again whenever it dies.
type rig struct {
	t         *testing.T
	m         *matrix
	dir       string
	number    int
	namespace namespace.Namespace
	trap      *trap
	env       []string // of starter and operator
	workerEnv []string // which goes through the proxies

	struck, replays int

	mu      sync.Mutex
	worker  *os.Process
	died    chan struct{} // closed when the worker has died
	log     *os.File
	stopped bool
}

// recipientsOf are the accounts that a rig's reviews are mailed to.
func recipientsOf(number int) []string {
	return []string{fmt.Sprintf("author%d", number), fmt.Sprintf("reader%d", number)}
}

func newRig(t *testing.T, m *matrix, number, runs int) *rig {
	t.Helper()
	r := &rig{t: t, m: m, dir: t.TempDir(), number: number, trap: &trap{}}
	r.trap.kill = r.killWorker
	database := storetest.New(t)
	var where namespace.Config
	r.namespace, where = namespacetest.New(t)
	toDatabase, err := url.Parse(database.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	postgres := r.proxy(toDatabase.Host, talkPostgres)
	smtp := r.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.SMTPPort), talkSMTP)
	imap := r.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.IMAPPort), talkIMAP)
	r.write("depot.txtar", 0o600, r.depot(runs))
	r.write("p4", 0o700, fmt.Sprintf("#!/bin/sh\nexport PATH='%s' P4SIM_DEPOT='%s' P4SIM_STATE='%s' P4SIM_MAIL_DOMAIN=keep\nexec '%s' \"$@\"\n",
		os.Getenv("PATH"), r.path("depot.txtar"), r.path("p4sim"), filepath.Join(m.bin, "p4sim")))
	r.write("criticizer.yaml", 0o600, fmt.Sprintf(`
temporal: {address: %q, namespace: %q}
p4: {command: %q, port: "p4sim:1666", user: criticizer, state_dir: %q, allowed_paths: ["//depot/..."]}
llm: {base_url: %q, model: llmsim-1}
mail:
  provider: smtp
  host: 127.0.0.1
  port: %d
  tls: none
  from: Criticizer <criticizer@%s>
  clean_to: everyone
  mta_log: %q
  settle: 10s
  journal: {host: 127.0.0.1, port: %d, tls: none, username: journal}
  bounces: {host: 127.0.0.1, port: %d, tls: none, username: criticizer}
brake: {by_hand_only: true}
log: {format: json}
`, where.Address, where.Name, r.path("p4"), r.path("p4home"), m.model.URL+"/v1", smtp.port(), mailhost.Domain, m.host.Log, imap.port(), imap.port()))
	r.setEnv(database.URL, postgres)
	r.operator("allowlist", "apply", "-reason", "chaos")
	r.superviseWorker()
	return r
}

// setEnv has the worker alone reach the database through its proxy.
func (r *rig) setEnv(direct secret.Value, postgres *proxy) {
	r.t.Helper()
	keyset, err := artifact.NewKeyset()
	if err != nil {
		r.t.Fatal(err)
	}
	proxied, err := url.Parse(direct.Reveal())
	if err != nil {
		r.t.Fatal(err)
	}
	proxied.Host = fmt.Sprintf("127.0.0.1:%d", postgres.port())
	query := proxied.Query()
	query.Set("sslmode", "disable")
	proxied.RawQuery = query.Encode()
	common := append(os.Environ(),
		"CRITICIZER_CONFIG="+r.path("criticizer.yaml"),
		"CRITICIZER_REDACTION_KEY=a key of this test, long enough",
		"CRITICIZER_ARTIFACT_KEYSET="+keyset.Reveal(),
		"CRITICIZER_JOURNAL_PASSWORD="+r.m.host.Password,
		"CRITICIZER_BOUNCES_PASSWORD="+r.m.host.Password,
	)
	r.env = append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+direct.Reveal())
	r.workerEnv = append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+proxied.String())
}

func (r *rig) proxy(target string, talk talker) *proxy {
	r.t.Helper()
	p, err := openProxy(target, r.trap, talk)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.close)
	return p
}

// depot has one change per run, by the author and of interest to the reader.
func (r *rig) depot(runs int) string {
	people := recipientsOf(r.number)
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "-- user %[1]s %[1]s@%[3]s The Author --\n-- user %[2]s %[2]s@%[3]s The Reader --\n//depot/...\n", people[0], people[1], mailhost.Domain)
	for n := range runs {
		_, _ = fmt.Fprintf(&out, "-- change %[1]d user=%[2]s client=ws --\nChange number %[1]d.\n-- add text //depot/%[1]d.go --\npackage a\n\n// TODO: write it\nfunc A%[1]d() {}\n", n+1, people[0])
	}
	return out.String()
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name string, mode os.FileMode, body string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(body), mode); err != nil {
		r.t.Fatal(err)
	}
}

// superviseWorker runs the worker until the test ends, starting it again
// whenever it has died.
func (r *rig) superviseWorker() {
	r.t.Helper()
	var err error
	if r.log, err = os.Create(r.path("worker.log")); err != nil {
		r.t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for r.runWorker() {
			time.Sleep(200 * time.Millisecond)
		}
	})
	r.t.Cleanup(func() {
		r.mu.Lock()
		r.stopped = true
		r.mu.Unlock()
		r.killWorker()
		done.Wait()
		if log, err := os.ReadFile(r.log.Name()); r.t.Failed() && err == nil {
			r.t.Logf("worker's log:\n%s", log)
		}
		_ = r.log.Close()
	})
}

// runWorker runs a worker until it dies, and reports whether another is wanted.
func (r *rig) runWorker() (again bool) {
	cmd := exec.Command(filepath.Join(r.m.bin, "worker"))
	cmd.Env, cmd.Stdout, cmd.Stderr = r.workerEnv, r.log, r.log
	r.mu.Lock()
	if r.stopped || cmd.Start() != nil {
		r.mu.Unlock()
		return false
	}
	died := make(chan struct{})
	r.worker, r.died = cmd.Process, died
	r.mu.Unlock()
	_ = cmd.Wait()
	close(died)
	return true
}

// killWorker returns when the worker is dead.
func (r *rig) killWorker() {
	r.mu.Lock()
	worker, died := r.worker, r.died
	r.mu.Unlock()
	if worker != nil {
		_ = worker.Kill()
		<-died
	}
}

// patience bounds one review with all its retries.
const patience = 4 * time.Minute

// review has change n reviewed while p strikes, and what was dead-lettered
// replayed, until it has succeeded.
func (r *rig) review(p point, n int) {
	r.t.Helper()
	if p.undelivered > 0 {
		r.m.queue.Lock()
		defer r.m.queue.Unlock()
		r.m.host.Delivery.Shut()
		defer r.m.host.Delivery.Open()
		open := time.AfterFunc(p.undelivered, r.m.host.Delivery.Open)
		defer open.Stop()
	} else {
		r.m.queue.RLock()
		defer r.m.queue.RUnlock()
	}
	r.trap.set(p.strikes, p.skip(n))
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	id := r.start(n)
	for {
		err := r.namespace.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			r.t.Fatalf("change %d was not reviewed within %s", n, patience)
		}
		r.replay(n)
	}
	if r.trap.done() {
		r.struck++
	}
}

func (r *rig) start(n int) (workflowID string) {
	r.t.Helper()
	var answer struct {
		WorkflowID string `json:"workflow_id"`
	}
	if err := json.Unmarshal(r.command("starter", "change-commit", "-json", fmt.Sprint(n)), &answer); err != nil {
		r.t.Fatal(err)
	}
	return answer.WorkflowID
}

// replay does what the runbook has the operator do about a dead letter: a
// recipient that was refused is to be tried again, then the stage is.
func (r *rig) replay(n int) {
	r.t.Helper()
	r.replays++
	var rows []struct {
		ID     int64  `json:"id"`
		Status string `json:"status"`
	}
	r.decode(&rows, r.operator("delivery", "list", "-changelist", fmt.Sprint(n), "-json"))
	for _, row := range rows {
		switch row.Status {
		case "failed":
			r.operator("delivery", "resend", fmt.Sprint(row.ID), "-reason", "chaos: the server takes it now")
		case "held":
			r.t.Fatalf("change %d: a delivery is held: all sources of evidence were blind", n)
		}
	}
	var letters []struct {
		ID int64 `json:"id"`
	}
	r.decode(&letters, r.operator("deadletter", "list", "-json"))
	for _, letter := range letters {
		r.operator("deadletter", "replay", fmt.Sprint(letter.ID), "-evidence", "chaos: the fault is over")
	}
}

func (r *rig) decode(v any, body []byte) {
	r.t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		r.t.Fatalf("decode %q: %v", body, err)
	}
}

func (r *rig) operator(args ...string) []byte {
	r.t.Helper()
	return r.command("operator", args...)
}

// command runs one of our commands and returns what it prints.
func (r *rig) command(name string, args ...string) []byte {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.m.bin, name), args...)
	cmd.Env = r.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		r.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &stderr)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}
