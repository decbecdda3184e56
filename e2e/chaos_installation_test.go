package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/smtp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A installation has its own namespace, database, depot, mail accounts and supervised
// worker.
type chaosInstallation struct {
	t         *testing.T
	m         *matrix
	kind      kind
	dir       string
	number    int
	namespace temporal.Namespace
	temporal  temporal.Config
	trigger   *trigger
	env       []string // of starter and operator
	workers   *supervisor
	last      time.Time   // end of the last review
	started   chan string // receives the workflow ID of the review
}

// accountsOf returns the recipients of an installation's reviews.
func accountsOf(number int) (author, reader string) {
	return fmt.Sprintf("author%d", number), fmt.Sprintf("reader%d", number)
}

func (in *chaosInstallation) sender() string  { return fmt.Sprintf("criticizer%d", in.number) }
func (in *chaosInstallation) journal() string { return fmt.Sprintf("journal%d", in.number) }

func newChaosInstallation(t *testing.T, m *matrix, k kind, number int) *chaosInstallation {
	t.Helper()
	m.setups <- struct{}{}
	defer func() { <-m.setups }()
	in := &chaosInstallation{t: t, m: m, kind: k, dir: t.TempDir(), number: number, trigger: &trigger{}}
	database := in.database()
	in.temporal = in.createNamespace()
	toDatabase, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	postgres := in.proxy(toDatabase.Host, handlePostgres)
	server := smtpServer{m.certificate, in.sender(), m.host.Password}
	mailServer := in.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.SMTPPort), server.handle)
	mailboxes := in.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.IMAPPort), handleIMAP)
	writeP4(t, in.path("p4"), binDir, "P4SIM_DEPOT="+in.path("depot.txtar"), "P4SIM_STATE="+in.path("p4sim"), "P4SIM_MAIL_DOMAIN=keep")
	in.write("criticizer.yaml", 0o600, fmt.Sprintf(`
temporal: {address: %q, namespace: %q}
p4: {command: %q, port: "ssl:p4sim:1666", user: criticizer, state_dir: %q, allowed_paths: ["//depot/..."]}
llm: {base_url: %q, model: llmsim-1, verify: "off"}
mail:
  server: smtp://%[7]s@127.0.0.1:%[6]d
  from: Criticizer <%[7]s@%[8]s>
  clean_to: everyone
  settle: %[12]s
  bounces: {server: "imap+insecure://%[7]s@127.0.0.1:%[9]d"}
%[10]sstarter: {spool_dir: %[11]q}
worker: {no_breaker: true}
`, in.temporal.Address, in.temporal.Name, in.path("p4"), in.path("p4home"), m.model.URL+"/v1", mailServer.port(), in.sender(), mailHostDomain,
		mailboxes.port(), in.evidence(mailboxes.port()), in.path("spool"), settleWindow))
	workerEnv := in.setEnv(database, postgres.port())
	in.operator("allowlist", "apply", "--reason", "chaos")
	in.sendFirstMail()
	in.workers = newSupervisor(t, filepath.Join(binDir, "worker"), workerEnv, in.path("worker.log"))
	in.trigger.kill, in.trigger.stop, in.trigger.freeze, in.trigger.reset = in.workers.kill, in.workers.stop, in.workers.freeze, in.reset
	return in
}

// database returns the URL of a new database, in its own cluster if the point restarts
// Postgres.
func (in *chaosInstallation) database() string {
	in.t.Helper()
	if !in.kind.ownPostgres {
		return in.m.cluster.database(in.t, fmt.Sprintf("installation%d", in.number))
	}
	c := startCluster(in.t, in.m.binaries, in.m.seed, durable)
	in.trigger.restartPostgres = func() { c.restart(in.t) }
	return c.url(seedDatabase)
}

// createNamespace makes a namespace, on its own server if the point restarts Temporal.
func (in *chaosInstallation) createNamespace() (where temporal.Config) {
	in.t.Helper()
	address := os.Getenv(temporaltest.AddressVariable)
	if in.kind.ownTemporal {
		s := startTemporal(in.t, `history.timerProcessorMaxTimeShift="50ms"`)
		in.trigger.restartTemporal = func() { s.Restart(in.t) }
		address = s.Address
	}
	in.namespace, where = temporaltest.NewAt(in.t, temporal.Config{Address: address}, contract.Attributes()...)
	return where
}

// evidence returns the configuration of the evidence sources.
func (in *chaosInstallation) evidence(imap int) string {
	log := fmt.Sprintf("  mta_log: %q\n", in.m.host.Log)
	journal := fmt.Sprintf("  journal: {server: \"imap+insecure://%s@127.0.0.1:%d\"}\n", in.journal(), imap)
	switch in.kind.evidence {
	case journalOnly:
		return journal
	case noEvidence:
		return ""
	}
	return log + journal
}

// setEnv sets the environments: only the worker connects to the database by its proxy.
func (in *chaosInstallation) setEnv(database string, proxied int) (workerEnv []string) {
	in.t.Helper()
	evidenceKey, err := evidence.Generate()
	if err != nil {
		in.t.Fatal(err)
	}
	through, err := url.Parse(database)
	if err != nil {
		in.t.Fatal(err)
	}
	through.Host = fmt.Sprintf("127.0.0.1:%d", proxied)
	common := append(os.Environ(),
		"CRITICIZER_CONFIG="+in.path("criticizer.yaml"),
		"CRITICIZER_REDACTION_KEY=a key of this test, long enough",
		"CRITICIZER_EVIDENCE_KEY="+evidenceKey.Reveal(),
		"CRITICIZER_SMTP_PASSWORD="+in.m.host.Password,
		"CRITICIZER_MAIL_JOURNAL_PASSWORD="+in.m.host.Password,
		"CRITICIZER_MAIL_BOUNCES_PASSWORD="+in.m.host.Password,
		"SSL_CERT_FILE="+in.m.authority,
	)
	common = append(common, keysetVariables(in.t)...)
	in.env = append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+database)
	return append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+through.String())
}

func (in *chaosInstallation) proxy(target string, talk connHandler) *proxy {
	in.t.Helper()
	p, err := newProxy(target, in.trigger, talk)
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(p.close)
	return p
}

// submit replaces the depot with change n by the author; the reader subscribes to it.
func (in *chaosInstallation) submit(n int) {
	in.t.Helper()
	author, reader := accountsOf(in.number)
	mailbox := reader
	if in.kind.gone {
		mailbox = fmt.Sprintf("gone%d%05d", in.number, n) // a new one: an address that bounced gets no mail again
	}
	in.write("depot.txtar", 0o600, fmt.Sprintf(`-- user %[1]s %[1]s@%[4]s The Author --
-- user %[2]s %[3]s@%[4]s The Reader --
//depot/...
-- change %[5]d user=%[1]s --
Change number %[5]d.
-- add text //depot/%[5]d.go --
package a

// TODO: write it
func A%[5]d() {}
`, author, reader, mailbox, mailHostDomain, n))
}

// sendFirstMail sends a mail from the sender's address: a journal or log without any of
// our mails is not evidence that a mail is absent.
func (in *chaosInstallation) sendFirstMail() {
	in.t.Helper()
	author, _ := accountsOf(in.number)
	from, to := in.sender()+"@"+mailHostDomain, author+"@"+mailHostDomain
	text := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: hello\r\nMessage-ID: <crz1.hello-%s>\r\nX-Criticizer-Key: hello\r\n\r\nHello.\r\n", from, to, from)
	if err := smtp.SendMail(fmt.Sprintf("127.0.0.1:%d", in.m.host.SMTPPort), nil, from, []string{to}, []byte(text)); err != nil {
		in.t.Fatal(err)
	}
	if !poll(time.Minute, 50*time.Millisecond, func() bool { return in.m.mails(in.t, in.journal(), "hello") > 0 }) {
		in.t.Fatal("the journal does not receive sent mail")
	}
}

func (in *chaosInstallation) path(name string) string { return filepath.Join(in.dir, name) }

func (in *chaosInstallation) write(name string, mode os.FileMode, body string) {
	in.t.Helper()
	writeFile(in.t, in.path(name), mode, body)
}

// settleWindow is mail.settle of all installations: longer than a look-up waits for its end.
const settleWindow = 12 * time.Second

// reviewTimeout bounds one review with all its retries and replays.
const reviewTimeout = 6 * time.Minute

// review reviews change n while the point's faults are injected, and replays its dead
// letters until it succeeds.
func (in *chaosInstallation) review(j *job, n int) (o outcome) {
	in.t.Helper()
	in.waitForDisconnect()
	in.submit(n)
	in.holdMail(j.point)
	in.started = make(chan string, 1)
	in.trigger.arm(j.point.faults, j.point.skip(j.run))
	ctx, cancel := context.WithTimeout(in.t.Context(), reviewTimeout)
	defer cancel()
	id := in.start(n)
	in.started <- id
	for {
		err := in.namespace.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			in.t.Fatalf("%s: change %d was not reviewed within %s: %v", j.point.name, n, reviewTimeout, err)
		}
		if _, ended := errors.AsType[*sdktemporal.WorkflowExecutionError](err); ended {
			o.held += in.replay(n)
			o.replays++
		} else {
			in.t.Logf("%s: wait for change %d: %v", j.point.name, n, err) // Temporal restarts
			time.Sleep(time.Second)
		}
	}
	o.reached = in.trigger.done()
	in.workers.stopSecond()
	in.last = time.Now()
	return o
}

// waitForDisconnect waits until the worker has closed its idle SMTP connection, so that
// each review opens its own.
func (in *chaosInstallation) waitForDisconnect() {
	const connectionKept = 1200 * time.Millisecond
	time.Sleep(time.Until(in.last.Add(connectionKept)))
}

// holdMail has the mail server hold the messages that the point names.
func (in *chaosInstallation) holdMail(p point) {
	author, reader := accountsOf(in.number)
	in.hold(p.undelivered, author, reader, in.journal())
	in.hold(p.journalLate, in.journal())
}

func (in *chaosInstallation) hold(during time.Duration, accounts ...string) {
	if during == 0 {
		return
	}
	if err := in.m.host.Hold(accounts...); err != nil {
		in.t.Fatal(err)
	}
	// If the release fails, drain finds the messages in the queue and fails the test.
	time.AfterFunc(during, func() { _ = in.m.host.Release(accounts...) })
}

// reset resets the running review to its last workflow task, as an operator might in the
// UI or with the temporal command.
func (in *chaosInstallation) reset() {
	id := <-in.started
	in.started <- id
	ctx, cancel := context.WithTimeout(in.t.Context(), time.Minute)
	defer cancel()
	described, err := in.namespace.DescribeWorkflow(ctx, id, "")
	if err != nil {
		in.t.Error(err)
		return
	}
	run := described.WorkflowExecution.RunID
	last := int64(0)
	for events := in.namespace.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			in.t.Error(err)
			return
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = event.GetEventId()
		}
	}
	_, err = in.namespace.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: in.temporal.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "chaos", WorkflowTaskFinishEventId: last,
	})
	if err != nil {
		in.t.Errorf("reset: %v", err)
	}
}
