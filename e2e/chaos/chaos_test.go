// Package chaos breaks a real worker at every point of the send-and-mark
// sequence, with a real Postfix and Dovecot behind it, and counts what arrived
// in the recipients' mailboxes (review-notification 6.4, 8.2, 10.3).
//
// The product has no hooks for this. Proxies between worker and mail server,
// worker and database, worker and mailboxes recognise the moment on the wire.
// make chaos runs it; CHAOS_RUNS is how often each point is tried.
package chaos

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/mailhost"
)

const (
	// runsVariable sets the number of runs per point; without it nothing is run.
	runsVariable = "CHAOS_RUNS"
	// pointsVariable chooses the points whose name matches it, a regular expression.
	pointsVariable = "CHAOS_POINTS"
	// places is how many rigs there are at a time, about: they wait, mostly, for
	// Temporal to notice a dead worker. The test's -parallel must allow for them.
	maxInstallations = 40
)

// A matrix is what all points share.
type matrix struct {
	bin         string
	host        *mailhost.Host
	model       *httptest.Server
	certificate tls.Certificate // of the mail server
	authority   string          // file with the certificate of who vouches for it
	binaries    string          // of Postgres
	seed        string          // data of a cluster with a migrated database
	cluster     *cluster        // for all who do not restart theirs
	setups      chan struct{}   // has room for those that may be under way
}

func TestChaos(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil || runs < 1 {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; make chaos sets it", runsVariable)
	}
	m := newMatrix(t)
	results := m.runAll(t, matching(points(), os.Getenv(pointsVariable)), runs)
	m.drain(t)
	m.count(t, results)
	report(t, results)
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{
		bin: t.TempDir(), host: mailhost.New(t), model: httptest.NewServer(llmsim.New(llmsim.Config{})), setups: make(chan struct{}, 4),
	}
	t.Cleanup(m.model.Close)
	m.certificate, m.authority = issueCertificate(t)
	m.binaries = postgresBinaries(t)
	m.seed = seedCluster(t, m.binaries)
	m.cluster = startCluster(t, m.binaries, m.seed, fast)
	build := exec.Command("go", "build", "-o", m.bin+"/", "../../worker", "../../starter", "../../operator", "../../p4/p4sim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the commands: %v\n%s", err, out)
	}
	return m
}

// runAll runs every point, its runs spread over the rigs of its kind.
func (m *matrix) runAll(t *testing.T, points []point, runs int) []*result {
	t.Helper()
	results := make([]*result, len(points))
	byKind := map[kind][]*job{}
	for i, p := range points {
		results[i] = &result{Point: p.name, Runs: runs}
		for run := range runs {
			byKind[p.kind()] = append(byKind[p.kind()], &job{point: p, run: run + 1, result: results[i]})
		}
	}
	total := len(points) * runs
	progress := newProgressCounter(total)
	t.Run("rigs", func(t *testing.T) {
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

// rigsFor is a kind's share of the places, and not so many that setting them up
// is most of the work.
func installationsFor(jobs, total int) int {
	const jobsPerRig = 4
	return min(maxInstallations*jobs/total, jobs/jobsPerRig) + 1
}

// A job is one run of a point.
type job struct {
	point  point
	run    int
	result *result
}

// shuffled is a queue of all jobs in any order: points that follow each other in
// a rig do so by chance.
func shuffled(jobs []*job) <-chan *job {
	rand.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	queue := make(chan *job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	return queue
}

// serve runs jobs in one rig until there are no more. Each is of a changelist
// of its own.
func (m *matrix) serve(t *testing.T, k kind, number int, queue <-chan *job, progress *progressCounter) {
	t.Helper()
	t.Run(fmt.Sprint(number), func(t *testing.T) {
		t.Parallel()
		in := newInstallation(t, m, k, number)
		changelist := 0
		for j := range queue {
			changelist++
			j.result.begin(number, changelist)
			j.result.end(in.review(j, changelist))
			progress.add(1)
		}
	})
}

// drain waits until the mail server has delivered what it accepted, and a
// little more for what should not come.
func (m *matrix) drain(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		queued, err := m.host.Queued()
		if err == nil && len(queued) > 0 {
			err = m.host.Flush() // what was held for long is not tried again for as long
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(queued) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("messages are still in the mail server's queue: %q", queued)
		}
	}
	time.Sleep(2 * time.Second)
}

// count compares the mailboxes of the recipients, read over IMAP, with one copy
// per review.
func (m *matrix) count(t *testing.T, results []*result) {
	t.Helper()
	boxes := map[string]map[string]int{}
	for _, r := range results {
		for _, of := range r.reviews {
			author, reader := accountsOf(of.rig)
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

// mails is how often a mail is in an account's mailbox.
func (m *matrix) mails(t *testing.T, account, subject string) int {
	t.Helper()
	return m.copies(t, account)[subject]
}

// A tally tells who waits how far it is.
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
		progress("%d of %d runs, %s", c.done, c.total, time.Since(c.began).Round(time.Second))
	}
}

// progress prints a line at once, which t.Log does not.
func progress(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
