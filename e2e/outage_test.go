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
	down, up     func(*rig)
}

// endpoints are those of the three stages, and the webhook.
var endpoints = map[string]endpoint{
	"model": {
		stage: "critique", queue: activities.QueueLLM,
		down: func(r *rig) {
			if err := r.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable}); err != nil {
				r.t.Fatal(err)
			}
		},
		up: func(r *rig) { r.model.ClearFaults() },
	},
	"p4": {
		stage: "fetch", queue: activities.QueueFetch,
		down: func(r *rig) { r.write("p4fault", 0o600, `{"fault":"refused"}`) },
		up:   func(r *rig) { r.write("p4fault", 0o600, "") },
	},
	"smtp": {
		stage: "notify", queue: activities.QueueNotify,
		down: func(r *rig) { r.mailDoor.shut() },
		up:   func(r *rig) { r.mailDoor.open() },
	},
	"webhook": {
		stage: "notify-webhook", queue: activities.ChannelQueue(review.ChannelWebhook),
		down: func(r *rig) { r.hookDoor.shut() },
		up:   func(r *rig) { r.mailedWhileDown(); r.hookDoor.open() },
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
		for _, braked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, breaker %t", name, braked), func(t *testing.T) {
				t.Parallel()
				outage(t, name, e, braked, length)
			})
		}
	}
}

func outage(t *testing.T, name string, e endpoint, braked bool, length time.Duration) {
	reviews := reviewsIn(length)
	r := newRig(t, newDepot(t, manyChanges(reviews)...))
	r.openMailDoor()
	r.openWebhook()
	r.env = append(r.env, fmt.Sprintf("CRITICIZER_BREAKER_BY_HAND_ONLY=%t", !braked))
	e.down(r)
	worker := r.startWorker()
	over := time.After(length)
	for n := range reviews {
		if n >= burst {
			time.Sleep(trickle)
		}
		r.mustStart(strconv.Itoa(n + 1))
	}
	<-over
	if !braked { // a busy machine takes longer to burn all attempts
		waitFor(t, "the death of all reviews", func() bool { return r.rows("dead_letters", "true") == reviews })
	}
	e.up(r)
	recovery := time.Now()
	r.waitForJobs(reviews)
	took := time.Since(recovery).Round(time.Second)
	r.waitForRelease(e.queue)
	dead, want := r.rows("dead_letters", "true"), 0
	if !braked {
		want = reviews
	}
	if dead != want {
		t.Errorf("%d dead letters of %d reviews, want %d", dead, reviews, want)
	}
	told := reviews
	if !braked && name != "smtp" { // a mail that fails keeps no channel from being told
		told = 0
	}
	r.posted.wantEachOnce(t, told)
	_ = worker.Process.Signal(os.Interrupt)
	_ = worker.Wait()
	failed := bytes.Count(r.log.Bytes(), []byte(`"msg":"attempt failed","stage":"`+e.stage+`"`))
	t.Logf("| %s | %s | %t | %d | %d | %d | %s |", name, length, braked, reviews, dead, failed, took)
}

// The reviews of an outage: many at its begin, then one at a time until those
// that come could outlive it.
const (
	burst   = 20
	trickle = 2 * time.Second
	outlive = 30 * time.Second
)

func reviewsIn(length time.Duration) int {
	return burst + int(max(0, length-outlive)/(2*trickle)) // to start one takes its time too
}

// waitForRelease waits until a task queue has no breaker and no limit.
func (r *rig) waitForRelease(queue string) {
	r.t.Helper()
	waitFor(r.t, "the release of the queue", func() bool {
		state, err := r.namespace.BreakerOf(r.t.Context(), queue)
		return err == nil && !state.Running && state.Limit.PerSecond == nil
	})
}

// A door is the address of a server that can be down: while it is shut,
// connections are refused.
type door struct {
	t      *testing.T
	server string

	mu       sync.Mutex
	address  string
	listener net.Listener
}

// openMailDoor puts a door before the mail server.
func (r *rig) openMailDoor() {
	r.t.Helper()
	r.mailDoor = openDoor(r.t, r.inbox.SMTPAddr().String())
	_, port, err := net.SplitHostPort(r.mailDoor.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "CRITICIZER_MAIL_PORT="+port)
}

func openDoor(t *testing.T, server string) *door {
	t.Helper()
	d := &door{t: t, server: server, address: "127.0.0.1:0"}
	d.open()
	t.Cleanup(d.shut)
	return d
}

func (d *door) open() {
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
			go d.join(conn)
		}
	}()
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
}

// join passes on what both sides say until one of them is done.
func (d *door) join(conn net.Conn) {
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
