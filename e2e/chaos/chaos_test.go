// Package chaos breaks a real worker at every point of the send-and-mark
// sequence, with a real Postfix and Dovecot behind it, and counts what arrived
// in the recipients' mailboxes (review-notification 6.4, 8.2, 10.3).
//
// The product has no hooks for this. Proxies between worker and mail server,
// worker and database, worker and mailboxes recognise the moment on the wire.
// make chaos runs it; CHAOS_RUNS is how often each point is tried.
package chaos

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/mail/mailhost"
)

// runsVariable sets the number of runs per point; without it nothing is run.
const runsVariable = "CHAOS_RUNS"

// A result is a row of the table.
type result struct {
	Point      string `json:"point"`
	Runs       int    `json:"runs"`
	Struck     int    `json:"struck"`  // runs in which the point was reached
	Replays    int    `json:"replays"` // by the operator, after a dead letter
	Lost       int    `json:"lost"`
	Duplicated int    `json:"duplicated"`
	Problem    string `json:"problem,omitempty"`
}

func (r result) good() bool {
	return r.Lost == 0 && r.Duplicated == 0 && r.Struck == r.Runs && r.Problem == ""
}

// A matrix is what all points share.
type matrix struct {
	bin   string
	host  *mailhost.Host
	model *httptest.Server
	// queue is held for writing by the points that stop delivery for all.
	queue sync.RWMutex
}

func TestChaos(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil || runs < 1 {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; make chaos sets it", runsVariable)
	}
	m := &matrix{bin: t.TempDir(), host: mailhost.New(t), model: httptest.NewServer(llmsim.New(llmsim.Config{}))}
	t.Cleanup(m.model.Close)
	build := exec.Command("go", "build", "-o", m.bin+"/", "../../worker", "../../starter", "../../operator", "../../p4/p4sim")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the commands: %v\n%s", err, out)
	}
	// A journal that never saw a mail of ours calls none absent.
	t.Run("warm-up", func(t *testing.T) { newRig(t, m, 0, 1).review(point{}, 1) })

	chosen := points()
	if only := os.Getenv("CHAOS_POINTS"); only != "" {
		chosen = matching(chosen, only)
	}
	results := m.runAll(t, chosen, runs)
	m.drain(t)
	for i := range results {
		m.count(t, i+1, &results[i])
	}
	report(t, results)
}

// matching returns the points whose name holds text.
func matching(all []point, text string) []point {
	var some []point
	for _, p := range all {
		if strings.Contains(p.name, text) {
			some = append(some, p)
		}
	}
	return some
}

// places is how many points are run at a time: they wait, mostly, for Temporal
// to notice a dead worker.
const places = 8

// runAll runs every point in a rig of its own.
func (m *matrix) runAll(t *testing.T, points []point, runs int) []result {
	t.Helper()
	results := make([]result, len(points))
	t.Run("points", func(t *testing.T) {
		slots := make(chan struct{}, places)
		for i, p := range points {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				results[i] = result{Point: p.name, Runs: runs, Problem: "it did not end"}
				r := newRig(t, m, i+1, runs)
				for run := range runs {
					r.review(p, run+1)
				}
				results[i].Struck, results[i].Replays, results[i].Problem = r.struck, r.replays, ""
				progress("%-44s done", p.name)
			})
		}
	})
	return results
}

// drain waits until the mail server has delivered what it accepted, and a
// little more for what should not come.
func (m *matrix) drain(t *testing.T) {
	t.Helper()
	m.host.Delivery.Open()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		n, err := m.host.Queued()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are still in the mail server's queue", n)
		}
	}
	time.Sleep(2 * time.Second)
}

// count compares the mailboxes of a rig's recipients, read over IMAP, with one
// copy per review.
func (m *matrix) count(t *testing.T, number int, r *result) {
	t.Helper()
	for _, account := range recipientsOf(number) {
		headers, err := m.host.Headers(account)
		if err != nil {
			t.Fatal(err)
		}
		copies := map[string]int{}
		for _, h := range headers {
			subject, _, _ := strings.Cut(h.Get("Subject"), ":")
			copies[subject]++
		}
		for run := range r.Runs {
			n := copies[fmt.Sprintf("[criticizer] CL %d", run+1)]
			r.Lost += max(0, 1-n)
			r.Duplicated += max(0, n-1)
		}
	}
}

// report prints the table, writes build/chaos.json and fails the test if mail
// was lost or doubled.
func report(t *testing.T, results []result) {
	t.Helper()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "POINT\tRUNS\tREPLAYED\tLOST\tDUPLICATED\t")
	for _, r := range results {
		note := r.Problem
		if r.Struck < r.Runs && note == "" {
			note = fmt.Sprintf("reached in %d runs only", r.Struck)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", r.Point, r.Runs, r.Replays, r.Lost, r.Duplicated, note)
		if !r.good() {
			t.Errorf("%s: %+v", r.Point, r)
		}
	}
	_ = w.Flush()
	progress("\n%s", table.String())
	body, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "build")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chaos.json"), append(body, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// progress tells who waits how far it is.
func progress(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
