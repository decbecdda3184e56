package chaos

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
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/notify/mail/mailhost"
	"github.com/criticizer/criticizer/store/artifact"
)

// A rig is an installation of its own: namespace, database, depot, accounts
// at the mail server, and a worker that is started again whenever it dies.
type rig struct {
	t         *testing.T
	m         *matrix
	kind      kind
	dir       string
	number    int
	namespace temporalns.Namespace
	where     temporalns.Config
	trap      *trap
	env       []string // of starter and operator
	crew      *crew
	last      time.Time   // when the last review was over
	started   chan string // holds the id of the workflow that reviews, once it is known
}

// accountsOf are the recipients of a rig's reviews.
func accountsOf(number int) (author, reader string) {
	return fmt.Sprintf("author%d", number), fmt.Sprintf("reader%d", number)
}

func (r *rig) sender() string  { return fmt.Sprintf("criticizer%d", r.number) }
func (r *rig) journal() string { return fmt.Sprintf("journal%d", r.number) }

func newRig(t *testing.T, m *matrix, k kind, number int) *rig {
	t.Helper()
	m.setUps <- struct{}{}
	defer func() { <-m.setUps }()
	r := &rig{t: t, m: m, kind: k, dir: t.TempDir(), number: number, trap: &trap{}}
	database := r.database()
	r.where = r.temporal()
	toDatabase, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	postgres := r.proxy(toDatabase.Host, talkPostgres)
	server := smtpServer{m.certificate, r.sender(), m.host.Password}
	mailServer := r.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.SMTPPort), server.talk)
	mailboxes := r.proxy(fmt.Sprintf("127.0.0.1:%d", m.host.IMAPPort), talkIMAP)
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
  username: %[7]s
  from: Criticizer <%[7]s@%[8]s>
  clean_to: everyone
  settle: %[12]s
  bounces: {host: 127.0.0.1, port: %[9]d, tls: none, username: %[7]s}
%[10]sstarter: {spool_dir: %[11]q}
breaker: {by_hand_only: true}
log: {format: json}
`, r.where.Address, r.where.Name, r.path("p4"), r.path("p4home"), m.model.URL+"/v1", mailServer.port(), r.sender(), mailhost.Domain,
		mailboxes.port(), r.witnesses(mailboxes.port()), r.path("spool"), settle))
	workerEnv := r.setEnv(database, postgres.port())
	r.operator("allowlist", "apply", "--reason", "chaos")
	r.introduce()
	r.crew = newCrew(t, filepath.Join(m.bin, "worker"), workerEnv, r.path("worker.log"))
	r.trap.kill, r.trap.stop, r.trap.freeze, r.trap.reset = r.crew.kill, r.crew.stop, r.crew.freeze, r.reset
	return r
}

// database returns the URL of a database of the rig's own, in a cluster of its
// own if that is to be restarted.
func (r *rig) database() string {
	r.t.Helper()
	if !r.kind.ownPostgres {
		return r.m.cluster.database(r.t, fmt.Sprintf("rig%d", r.number))
	}
	c := startCluster(r.t, r.m.binaries, r.m.seed, durable)
	r.trap.restartPostgres = func() { c.restart(r.t) }
	return c.url(seedDatabase)
}

// temporal makes a namespace, on a server of the rig's own if that is to be
// restarted.
func (r *rig) temporal() (where temporalns.Config) {
	r.t.Helper()
	address := os.Getenv(temporalnstest.AddressVariable)
	if r.kind.ownTemporal {
		s := startTemporal(r.t, r.path("temporal.db"))
		r.trap.restartTemporal = func() { s.restart(r.t) }
		address = s.address()
	}
	r.namespace, where = temporalnstest.NewAt(r.t, address)
	return where
}

// witnesses is the part of the configuration that says where evidence is.
func (r *rig) witnesses(imap int) string {
	log := fmt.Sprintf("  mta_log: %q\n", r.m.host.Log)
	journal := fmt.Sprintf("  journal: {host: 127.0.0.1, port: %d, tls: none, username: %s}\n", imap, r.journal())
	switch r.kind.witnesses {
	case journalAlone:
		return journal
	case noWitness:
		return ""
	}
	return log + journal
}

// setEnv has the worker alone reach the database through its proxy.
func (r *rig) setEnv(database string, proxied int) (workerEnv []string) {
	r.t.Helper()
	keyset, err := artifact.NewKeyset()
	if err != nil {
		r.t.Fatal(err)
	}
	through, err := url.Parse(database)
	if err != nil {
		r.t.Fatal(err)
	}
	through.Host = fmt.Sprintf("127.0.0.1:%d", proxied)
	common := append(os.Environ(),
		"CRITICIZER_CONFIG="+r.path("criticizer.yaml"),
		"CRITICIZER_REDACTION_KEY=a key of this test, long enough",
		"CRITICIZER_ARTIFACT_KEYSET="+keyset.Reveal(),
		"CRITICIZER_SMTP_PASSWORD="+r.m.host.Password,
		"CRITICIZER_MAIL_JOURNAL_PASSWORD="+r.m.host.Password,
		"CRITICIZER_MAIL_BOUNCES_PASSWORD="+r.m.host.Password,
		"SSL_CERT_FILE="+r.m.authority,
	)
	r.env = append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+database)
	return append(slices.Clip(common), "CRITICIZER_DATABASE_URL="+through.String())
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

// submit has change n in the depot, by the author and of interest to the reader.
func (r *rig) submit(n int) {
	r.t.Helper()
	author, reader := accountsOf(r.number)
	mailbox := reader
	if r.kind.gone {
		mailbox = fmt.Sprintf("gone%d", r.number)
	}
	r.write("depot.txtar", 0o600, fmt.Sprintf(`-- user %[1]s %[1]s@%[4]s The Author --
-- user %[2]s %[3]s@%[4]s The Reader --
//depot/...
-- change %[5]d user=%[1]s client=ws --
Change number %[5]d.
-- add text //depot/%[5]d.go --
package a

// TODO: write it
func A%[5]d() {}
`, author, reader, mailbox, mailhost.Domain, n))
}

// introduce sends a mail of the sender's: a journal or a log that never saw one
// of ours calls none absent.
func (r *rig) introduce() {
	r.t.Helper()
	author, _ := accountsOf(r.number)
	from, to := r.sender()+"@"+mailhost.Domain, author+"@"+mailhost.Domain
	text := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: hello\r\nMessage-ID: <crz1.hello-%s>\r\nX-Criticizer-Key: hello\r\n\r\nHello.\r\n", from, to, from)
	if err := smtp.SendMail(fmt.Sprintf("127.0.0.1:%d", r.m.host.SMTPPort), nil, from, []string{to}, []byte(text)); err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); r.m.mails(r.t, r.journal(), "hello") == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("the journal does not get what is sent")
		}
	}
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name string, mode os.FileMode, body string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(body), mode); err != nil {
		r.t.Fatal(err)
	}
}

// settle is the settle window of all rigs.
const settle = 10 * time.Second

// patience bounds one review with all its retries.
const patience = 6 * time.Minute

// review has change n reviewed while the point strikes, and what was
// dead-lettered replayed, until it has succeeded.
func (r *rig) review(j *job, n int) (o outcome) {
	r.t.Helper()
	r.rest()
	r.submit(n)
	r.keepBack(j.point)
	r.started = make(chan string, 1)
	r.trap.set(j.point.strikes, j.point.skip(j.run))
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	id := r.start(n)
	r.started <- id
	for {
		err := r.namespace.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			r.t.Fatalf("%s: change %d was not reviewed within %s: %v", j.point.name, n, patience, err)
		}
		if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); ended {
			o.held += r.replay(n)
			o.replays++
		} else {
			r.t.Logf("%s: wait for change %d: %v", j.point.name, n, err) // Temporal is being restarted
			time.Sleep(time.Second)
		}
	}
	o.struck = r.trap.done()
	r.crew.dismiss()
	r.last = time.Now()
	return o
}

// rest waits until the worker has said goodbye to the mail server, so that each
// review begins with a connection of its own.
func (r *rig) rest() {
	const connectionKept = 1200 * time.Millisecond
	time.Sleep(time.Until(r.last.Add(connectionKept)))
}

// keepBack has the mail server keep in its queue what the point wants there.
func (r *rig) keepBack(p point) {
	author, reader := accountsOf(r.number)
	r.holdFor(p.undelivered, author, reader, r.journal())
	r.holdFor(p.journalLate, r.journal())
}

func (r *rig) holdFor(during time.Duration, accounts ...string) {
	if during == 0 {
		return
	}
	if err := r.m.host.Hold(accounts...); err != nil {
		r.t.Fatal(err)
	}
	// If it fails, the mail stays in the queue, and draining the queue fails.
	time.AfterFunc(during, func() { _ = r.m.host.Release(accounts...) })
}

// reset does what the UI and the command line do for a reset to the last workflow
// task, while the run goes on.
func (r *rig) reset() {
	id := <-r.started
	r.started <- id
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	described, err := r.namespace.DescribeWorkflow(ctx, id, "")
	if err != nil {
		r.t.Error(err)
		return
	}
	run := described.WorkflowExecution.RunID
	last := int64(0)
	for events := r.namespace.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			r.t.Error(err)
			return
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = event.GetEventId()
		}
	}
	_, err = r.namespace.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: r.where.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "chaos", WorkflowTaskFinishEventId: last,
	})
	if err != nil {
		r.t.Errorf("reset: %v", err)
	}
}
