package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// outageVariable names the environment variable with the length of TestOutage's outages;
// make outage sets 2m. It must exceed 15 s, the waits of five attempts.
const outageVariable = "OUTAGE"

// An endpoint is a server that a stage calls, with functions that break and repair it.
type endpoint struct {
	stage, queue string
	down, up     func(*installation)
}

var endpoints = map[string]endpoint{
	"model": {
		stage: "critique", queue: activities.QueueLLM,
		down: func(in *installation) { in.inject(llmsim.Fault{Kind: llmsim.Unavailable}) },
		up:   func(in *installation) { in.model.ClearFaults() },
	},
	"p4": {
		stage: "fetch", queue: activities.QueueFetch,
		down: func(in *installation) { in.write("p4fault", 0o600, `{"fault":"refused"}`) },
		up:   func(in *installation) { in.write("p4fault", 0o600, "") },
	},
	"smtp": {
		stage: "notify", queue: activities.QueueNotify,
		down: func(in *installation) { in.mailProxy.takeDown() },
		up:   func(in *installation) { in.mailProxy.bringUp() },
	},
	"webhook": {
		stage: "notify-webhook", queue: activities.ChannelQueue(review.ChannelWebhook),
		down: func(in *installation) { in.webhookProxy.takeDown() },
		up:   func(in *installation) { in.checkMailedWhileDown(); in.webhookProxy.bringUp() },
	},
}

// An outage longer than five attempts dead-letters no review if the circuit breaker
// saves the attempts, and every review without the breaker.
func TestOutage(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(cmp.Or(os.Getenv(outageVariable), "25s"))
	if err != nil {
		t.Fatalf("%s: %v", outageVariable, err)
	}
	for name, e := range endpoints {
		for _, withBreaker := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, breaker %t", name, withBreaker), func(t *testing.T) {
				t.Parallel()
				testOutage(t, name, e, withBreaker, length)
			})
		}
	}
}

func testOutage(t *testing.T, name string, e endpoint, withBreaker bool, length time.Duration) {
	reviews := reviewsIn(length)
	in := newInstallation(t, newDepot(t, manyChanges(reviews)...))
	in.proxyMail()
	in.configureWebhook()
	in.env = append(in.env, fmt.Sprintf("CRITICIZER_BREAKER_BY_HAND_ONLY=%t", !withBreaker))
	e.down(in)
	worker := in.startWorker()
	over := time.After(length)
	for n := range reviews {
		if n >= burst {
			time.Sleep(arrivalInterval)
		}
		in.mustStart(strconv.Itoa(n + 1))
	}
	<-over
	if !withBreaker { // a busy machine takes longer for all attempts
		waitFor(t, "the dead letters of all reviews", func() bool { return in.countRows("dead_letters", "true") == reviews })
	}
	e.up(in)
	recovery := time.Now()
	in.waitForJobs(reviews)
	took := time.Since(recovery).Round(time.Second)
	in.waitForClosedBreaker(e.queue)
	dead, want := in.countRows("dead_letters", "true"), 0
	if !withBreaker {
		want = reviews
	}
	if dead != want {
		t.Errorf("%d dead letters of %d reviews, want %d", dead, reviews, want)
	}
	posts := reviews
	if !withBreaker && name != "smtp" { // a failed mail does not stop the webhook
		posts = 0
	}
	in.webhook.wantEachOnce(t, posts)
	_ = interrupt(worker)
	failed := bytes.Count(in.log.Bytes(), []byte(`"msg":"attempt failed","stage":"`+e.stage+`"`))
	t.Logf("| %s | %s | %t | %d | %d | %d | %s |", name, length, withBreaker, reviews, dead, failed, took)
}

// Reviews of an outage: a burst at its begin, then one per interval, except in the last
// 30 s, in which a review could outlive the outage.
const (
	burst           = 20
	arrivalInterval = 2 * time.Second
	lastArrival     = 30 * time.Second
)

func reviewsIn(length time.Duration) int {
	return burst + int(max(0, length-lastArrival)/(2*arrivalInterval)) // starting one takes time too
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
	_, port, err := net.SplitHostPort(in.mailProxy.address)
	if err != nil {
		in.t.Fatal(err)
	}
	in.env = append(in.env, "CRITICIZER_MAIL_PORT="+port)
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
