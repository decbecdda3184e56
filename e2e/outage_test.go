package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// outageVariable names the environment variable with the length of TestOutage's outages;
// make outage sets 1m, and breaks each endpoint in all ways.
const outageVariable = "OUTAGE"

// An endpoint is a server that a stage calls, with ways to break it. up repairs it.
type endpoint struct {
	stage string
	down  map[string]func(*installation) // the way named outageQuick is part of every run
	up    func(*installation)
}

// outageQuick is the way that make test tries.
const outageQuick = "refused credentials"

func modelFault(kind llmsim.FaultKind) func(*installation) {
	return func(in *installation) { in.inject(llmsim.Fault{Kind: kind}) }
}

func p4Message(text string, generic int) func(*installation) {
	return func(in *installation) {
		in.write("p4fault", 0o600, fmt.Sprintf(`{"fault":"message","text":%q,"severity":3,"generic":%d}`, text, generic))
	}
}

func mailReply(code int, enhanced ...int) func(*installation) {
	return func(in *installation) {
		in.inbox.Inject(inbox.Fault{At: inbox.AtRcpt, Code: code, Enhanced: [3]int(enhanced), Times: math.MaxInt})
	}
}

func webhookStatus(code int) func(*installation) {
	return func(in *installation) { in.webhook.setStatus(code) }
}

var endpoints = map[string]endpoint{
	"model": {
		stage: "llm",
		down: map[string]func(*installation){
			"unavailable": modelFault(llmsim.Unavailable), outageQuick: modelFault(llmsim.InvalidKey), "no quota": modelFault(llmsim.InsufficientQuota),
			"no access to the model": modelFault(llmsim.Forbidden), "closed connections": modelFault(llmsim.Drop), "unusable answers": modelFault(llmsim.Prose),
		},
		up: func(in *installation) { in.model.ClearFaults() },
	},
	"p4": {
		stage: "fetch",
		down: map[string]func(*installation){
			"refused connections":   func(in *installation) { in.write("p4fault", 0o600, `{"fault":"refused"}`) },
			outageQuick:             p4Message("Your session has expired, please login again.", 4),
			"another server key":    func(in *installation) { in.write("p4fault", 0o600, `{"fault":"trust"}`) },
			"an expired licence":    p4Message("License expired.", 34),
			"a maintenance trigger": p4Message("Operation 'user-describe' failed.\nThe server is in maintenance.", 4),
			"no permission":         p4Message("You don't have permission for this operation.", 4),
		},
		up: func(in *installation) { in.write("p4fault", 0o600, "") },
	},
	"smtp": {
		stage: "notify",
		down: map[string]func(*installation){
			"refused connections": func(in *installation) { in.mailProxy.takeDown() },
			outageQuick:           mailReply(535, 5, 7, 8), "a refused sender": mailReply(550, 5, 7, 60),
			"an overload": mailReply(451, 4, 3, 2), "no service": mailReply(421, 4, 3, 0), "a full disk": mailReply(452, 4, 3, 1),
		},
		up: func(in *installation) { in.inbox.ClearFaults(); in.mailProxy.takeDown(); in.mailProxy.bringUp() },
	},
	"webhook": {
		stage: "webhook",
		down: map[string]func(*installation){
			"refused connections": func(in *installation) { in.webhookProxy.takeDown() },
			outageQuick:           webhookStatus(401), "forbidden": webhookStatus(403), "an unknown URL": webhookStatus(404),
			"too many requests": webhookStatus(429), "an overload": webhookStatus(503),
		},
		up: func(in *installation) {
			in.checkMailedWhileDown()
			in.webhook.setStatus(http.StatusOK)
			in.webhookProxy.takeDown()
			in.webhookProxy.bringUp()
		},
	},
}

// An outage dead-letters at most 3 reviews, whatever it is and however many run at once. All
// others are reviewed after the repair.
func TestOutage(t *testing.T) {
	t.Parallel()
	long, err := time.ParseDuration(cmp.Or(os.Getenv(outageVariable), "0s"))
	if err != nil {
		t.Fatalf("%s: %v", outageVariable, err)
	}
	for name, e := range endpoints {
		for way, down := range e.down {
			if way != outageQuick && long == 0 {
				continue
			}
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				reviews := 12
				if long > 0 {
					reviews = 100
				}
				testOutage(t, e, down, reviews, long)
			})
		}
	}
}

func testOutage(t *testing.T, e endpoint, down func(*installation), reviews int, length time.Duration) {
	in := newInstallation(t, newDepot(t, manyChanges(reviews)...))
	in.proxyMail()
	in.configureWebhook()
	for _, stage := range []string{"FETCH", "REDACT", "LLM", "NOTIFY"} {
		in.env = append(in.env, "CRITICIZER_WORKER_"+stage+"_AT_ONCE=64")
	}
	down(in)
	for n := range reviews {
		in.mustStart(strconv.Itoa(n + 1))
	}
	worker := in.startWorker()
	waitFor(t, "the open breaker", func() bool { return in.breakerOpen(e.stage) })
	time.Sleep(length)
	e.up(in)
	recovery := time.Now()
	in.waitForJobs(reviews)
	took := time.Since(recovery).Round(time.Second)
	in.waitForClosedBreaker(e.stage)
	dead := in.countRows("dead_letters", "true")
	if dead > 3 {
		t.Errorf("%d dead letters of %d reviews, want at most 3", dead, reviews)
	}
	if e.stage != "webhook" { // a review whose mail failed has posted
		posted := reviews
		if e.stage != "notify" {
			posted -= dead
		}
		in.webhook.wantEachOnce(t, posted)
	}
	_ = interrupt(worker)
	failed := bytes.Count(in.log.Bytes(), []byte(`"msg":"attempt failed"`))
	t.Logf("| %d | %d | %d | %s |", reviews, dead, failed, took)
}

// A review that fails alone uses its five attempts and is dead-lettered.
func TestLoneReviewIsDeadLettered(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.inject(llmsim.Fault{Kind: llmsim.Unavailable})
	in.startWorker()
	in.mustStart("1")
	in.waitForJobs(1)
	if calls := in.model.Stats().Calls; calls != failure.AttemptBudget {
		t.Errorf("%d model calls, want %d", calls, failure.AttemptBudget)
	}
	if n := in.countRows("dead_letters", "error_class = '"+string(failure.UpstreamUnavailable)+"'"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// breakerOpen reports whether a worker's circuit breaker of a stage or channel is not closed.
func (in *installation) breakerOpen(stage string) bool {
	return in.countRows("outages", "stage = '"+stage+"'") > 0
}

func (in *installation) waitForClosedBreaker(stage string) {
	in.t.Helper()
	waitFor(in.t, "the closed breaker of "+stage, func() bool { return !in.breakerOpen(stage) })
}

// An outageProxy forwards connections to a server. While it is down, it refuses them.
type outageProxy struct {
	t      testing.TB
	server string

	mu       sync.Mutex
	address  string
	listener net.Listener
	conns    []net.Conn
}

// proxyMail puts an outageProxy in front of the mail server.
func (in *installation) proxyMail() {
	in.t.Helper()
	in.mailProxy = newOutageProxy(in.t, in.inbox.SMTPAddr().String())
	in.env = append(in.env, "CRITICIZER_MAIL_SERVER=smtp+insecure://"+in.mailProxy.address)
}

func newOutageProxy(tb testing.TB, server string) *outageProxy {
	tb.Helper()
	d := &outageProxy{t: tb, server: server, address: freeAddress(tb)}
	d.bringUp()
	tb.Cleanup(d.takeDown)
	return d
}

func (d *outageProxy) bringUp() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.listener, d.address = listener, listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // down
			}
			go d.relay(conn)
		}
	}()
}

func (d *outageProxy) takeDown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
	for _, conn := range d.conns { // a sender may keep one for its next message
		_ = conn.Close()
	}
	d.conns = nil
}

// relay copies in both directions until one side closes.
func (d *outageProxy) relay(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	d.mu.Lock()
	d.conns = append(d.conns, conn)
	d.mu.Unlock()
	server, err := net.Dial("tcp", d.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
}
