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

// outageVariable is how long the outages of TestOutage last: 2m under make
// outage. Five attempts wait 15 seconds in all, so that less shows nothing.
const outageVariable = "OUTAGE"

// An endpoint is something a stage talks to, which can be made to fail.
type endpoint struct {
	stage, queue string
	down, up     func(*installation)
}

// endpoints are those of the three stages, and the webhook.
var endpoints = map[string]endpoint{
	"model": {
		stage: "critique", queue: activities.QueueLLM,
		down: func(in *installation) {
			if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable}); err != nil {
				in.t.Fatal(err)
			}
		},
		up: func(in *installation) { in.model.ClearFaults() },
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

// An outage that is longer than the five attempts of a review can wait
// dead-letters nothing, for the breaker saves the attempts; without it, everything.
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
	if !withBreaker { // a busy machine takes longer to burn all attempts
		waitFor(t, "the death of all reviews", func() bool { return in.countRows("dead_letters", "true") == reviews })
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
	reported := reviews
	if !withBreaker && name != "smtp" { // a mail that fails keeps no channel from being told
		reported = 0
	}
	in.webhook.wantEachOnce(t, reported)
	_ = worker.Process.Signal(os.Interrupt)
	_ = worker.Wait()
	failed := bytes.Count(in.log.Bytes(), []byte(`"msg":"attempt failed","stage":"`+e.stage+`"`))
	t.Logf("| %s | %s | %t | %d | %d | %d | %s |", name, length, withBreaker, reviews, dead, failed, took)
}

// The reviews of an outage: many at its begin, then one at a time until those
// that come could outlive it.
const (
	burst           = 20
	arrivalInterval = 2 * time.Second
	breakerDelay    = 30 * time.Second
)

func reviewsIn(length time.Duration) int {
	return burst + int(max(0, length-breakerDelay)/(2*arrivalInterval)) // to start one takes its time too
}

// waitForRelease waits until a task queue has no breaker and no limit.
func (in *installation) waitForClosedBreaker(queue string) {
	in.t.Helper()
	waitFor(in.t, "the release of the queue", func() bool {
		state, err := in.namespace.BreakerOf(in.t.Context(), queue)
		return err == nil && !state.Running && state.Limit.PerSecond == nil
	})
}

// A door is the address of a server that can be down: while it is shut,
// connections are refused.
type outageProxy struct {
	t      *testing.T
	server string

	mu       sync.Mutex
	address  string
	listener net.Listener
}

// openMailDoor puts a door before the mail server.
func (in *installation) proxyMail() {
	in.t.Helper()
	in.mailProxy = newOutageProxy(in.t, in.inbox.SMTPAddr().String())
	_, port, err := net.SplitHostPort(in.mailProxy.address)
	if err != nil {
		in.t.Fatal(err)
	}
	in.env = append(in.env, "CRITICIZER_MAIL_PORT="+port)
}

func newOutageProxy(t *testing.T, server string) *outageProxy {
	t.Helper()
	d := &outageProxy{t: t, server: server, address: "127.0.0.1:0"}
	d.bringUp()
	t.Cleanup(d.takeDown)
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
				return // shut
			}
			go d.relay(conn)
		}
	}()
}

func (d *outageProxy) takeDown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
}

// join passes on what both sides say until one of them is done.
func (d *outageProxy) relay(conn net.Conn) {
	defer func() { _ = conn.Close() }()
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
