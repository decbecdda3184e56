package e2e

// The chaos test injects a fault at every point of the send-then-mark sequence of a real
// worker, with a real Postfix and Dovecot, and then counts the mails in the recipients'
// mailboxes: each review must be there exactly once (notification 10.3).
//
// The product has no hooks for this. Proxies between the worker and the mail server, the
// database and the mailboxes recognize the moment in the protocol. Every run of the tests
// has a few points; make chaos runs all of them, CHAOS_RUNS times.

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
)

const (
	// runsVariable sets the number of runs per point. Without it the points of reduced run
	// once.
	runsVariable = "CHAOS_RUNS"
	// reduced selects the points that every run of the tests has: the worker is killed around
	// each step that decides about a duplicate or a loss, and the server lies.
	reduced = "^(killed (before|after) (begin|dot|mark)|dropped after dot|554 to dot)$"
	// pointsVariable selects points by a regular expression for their names.
	pointsVariable = "CHAOS_POINTS"
	// maxInstallations approximately limits the installations that run at a time. They
	// mostly wait for Temporal to detect a dead worker. -parallel must not be lower.
	maxInstallations = 40
)

// A matrix holds what all points share.
type matrix struct {
	host        *mailHost
	model       *httptest.Server
	certificate tls.Certificate // of the mail server
	authority   string          // file with the certificate
	binaries    string          // directory of Postgres's programs
	seed        string          // data of a cluster with a migrated database
	cluster     *cluster        // shared by installations that do not restart theirs
	setups      chan struct{}   // limits concurrent set-ups
}

func TestChaos(t *testing.T) {
	t.Parallel() // its installations mostly wait for Temporal
	selected := os.Getenv(pointsVariable)
	runs, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil || runs < 1 {
		runs, selected = 1, reduced
	}
	m := newMatrix(t)
	results := m.runAll(t, matching(points(), selected), runs)
	m.drain(t)
	m.count(t, results)
	report(t, results)
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{
		host: newMailHost(t), model: httptest.NewServer(llmsim.New(llmsim.Config{})), setups: make(chan struct{}, 4),
	}
	t.Cleanup(m.model.Close)
	m.certificate, m.authority = issueCertificate(t)
	m.binaries = postgresBinaries(t)
	m.seed = seedCluster(t, m.binaries)
	m.cluster = startCluster(t, m.binaries, m.seed, fast)
	return m
}

// runAll runs every point. Its runs are distributed over the installations of its kind.
func (m *matrix) runAll(t *testing.T, points []point, runs int) []*pointResult {
	t.Helper()
	results := make([]*pointResult, len(points))
	byKind := map[kind][]*job{}
	for i, p := range points {
		results[i] = &pointResult{Point: p.name, Runs: runs}
		for run := range runs {
			byKind[p.kind()] = append(byKind[p.kind()], &job{point: p, run: run + 1, result: results[i]})
		}
	}
	total := len(points) * runs
	progress := newProgressCounter(total)
	t.Run("installations", func(t *testing.T) {
		number := 0
		for k, jobs := range byKind {
			queue := shuffled(jobs)
			for range installationsFor(len(jobs), total) {
				number++
				m.serve(t, k, number, queue, progress)
			}
		}
	})
	return results
}

// installationsFor returns the number of installations of a kind: its share of the
// maximum, but few enough that set-up is a small part of the work.
func installationsFor(jobs, total int) int {
	const jobsEach = 4
	return min(maxInstallations*jobs/total, jobs/jobsEach) + 1
}

// A job is one run of a point.
type job struct {
	point  point
	run    int
	result *pointResult
}

// shuffled returns a queue of all jobs in random order, so that the sequence of points in
// an installation varies.
func shuffled(jobs []*job) <-chan *job {
	rand.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	queue := make(chan *job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	return queue
}

// serve runs jobs in one installation until the queue is empty. Each has its own
// changelist.
func (m *matrix) serve(t *testing.T, k kind, number int, queue <-chan *job, progress *progressCounter) {
	t.Helper()
	t.Run(fmt.Sprint(number), func(t *testing.T) {
		t.Parallel()
		in := newChaosInstallation(t, m, k, number)
		changelist := 0
		for j := range queue {
			changelist++
			j.result.begin(number, changelist)
			j.result.end(in.review(j, changelist))
			progress.add(1)
		}
	})
}

// drain waits until the mail server has delivered all accepted messages, and two seconds
// longer for mails that must not come.
func (m *matrix) drain(t *testing.T) {
	t.Helper()
	var queued []string
	drained := poll(time.Minute, time.Second, func() bool {
		var err error
		queued, err = m.host.Queued()
		if err == nil && len(queued) > 0 {
			err = m.host.Flush() // Postfix retries old messages rarely
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(queued) == 0
	})
	if !drained {
		t.Fatalf("messages are still in the mail server's queue: %q", queued)
	}
	time.Sleep(2 * time.Second)
}

// count compares the recipients' mailboxes with one copy per review.
func (m *matrix) count(t *testing.T, results []*pointResult) {
	t.Helper()
	boxes := map[string]map[string]int{}
	for _, r := range results {
		for _, of := range r.reviews {
			author, reader := accountsOf(of.installation)
			for _, account := range []string{author, reader} {
				if boxes[account] == nil {
					boxes[account] = m.copies(t, account)
				}
				n := boxes[account][subjectOf(of.changelist)]
				r.Lost += max(0, 1-n)
				r.Duplicated += max(0, n-1)
			}
		}
	}
}

// copies counts the messages in an account's mailbox by subject.
func (m *matrix) copies(t *testing.T, account string) map[string]int {
	t.Helper()
	headers, err := m.host.Headers(account)
	if err != nil {
		t.Fatal(err)
	}
	copies := map[string]int{}
	for _, h := range headers {
		copies[shortSubject(h.Get("Subject"))]++
	}
	return copies
}

// mails counts the copies of a mail in an account's mailbox.
func (m *matrix) mails(t *testing.T, account, subject string) int {
	t.Helper()
	return m.copies(t, account)[subject]
}

// A progressCounter prints the number of completed runs.
type progressCounter struct {
	mu             sync.Mutex
	done, total    int
	began, printed time.Time
}

func newProgressCounter(total int) *progressCounter {
	return &progressCounter{total: total, began: time.Now(), printed: time.Now()}
}

func (c *progressCounter) add(n int) {
	const pause = 10 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if c.done == c.total || time.Since(c.printed) > pause {
		c.printed = time.Now()
		printLine("%d of %d runs, %s", c.done, c.total, time.Since(c.began).Round(time.Second))
	}
}

// printLine prints a line at once; t.Log prints at the end of the test.
func printLine(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
