package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

// A pointResult is a row of the table.
type pointResult struct {
	Point      string `json:"point"`
	Runs       int    `json:"runs"`
	Reached    int    `json:"reached"` // runs that reached the point
	Replays    int    `json:"replays"` // by the operator, after a dead letter
	Held       int    `json:"held"`    // deliveries that the operator resolved
	Lost       int    `json:"lost"`
	Duplicated int    `json:"duplicated"`
	Problem    string `json:"problem,omitempty"`

	mu      sync.Mutex
	reviews []reviewRef
	ended   int
}

// A reviewRef identifies the review of a run.
type reviewRef struct{ installation, changelist int }

func (r *pointResult) begin(installation, changelist int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews = append(r.reviews, reviewRef{installation, changelist})
}

// An outcome is the result of a run.
type outcome struct {
	reached       bool // the point was reached
	replays, held int
}

func (r *pointResult) end(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	r.Replays += o.replays
	r.Held += o.held
	if o.reached {
		r.Reached++
	}
}

func (r *pointResult) check() {
	switch {
	case r.ended < r.Runs:
		r.Problem = fmt.Sprintf("only %d runs ended", r.ended)
	case r.Reached < r.Runs:
		r.Problem = fmt.Sprintf("reached in %d runs only", r.Reached)
	}
}

func (r *pointResult) passed() bool { return r.Lost == 0 && r.Duplicated == 0 && r.Problem == "" }

// report prints the table, writes build/chaos.json and fails the test if a mail was lost
// or duplicated.
func report(t *testing.T, results []*pointResult) {
	t.Helper()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "POINT\tRUNS\tREPLAYED\tHELD\tLOST\tDUPLICATED\t")
	sum := pointResult{Point: "all"}
	for _, r := range results {
		r.check()
		writeRow(w, r)
		sum.add(r)
		if !r.passed() {
			t.Errorf("%s: lost %d, duplicated %d, %s", r.Point, r.Lost, r.Duplicated, r.Problem)
		}
	}
	writeRow(w, &sum)
	_ = w.Flush()
	printLine("\n%s", table.String())
	body, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "build")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chaos.json"), append(body, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeRow(w *tabwriter.Writer, r *pointResult) {
	_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Point, r.Runs, r.Replays, r.Held, r.Lost, r.Duplicated, r.Problem)
}

func (r *pointResult) add(other *pointResult) {
	r.Runs += other.Runs
	r.Replays += other.Replays
	r.Held += other.Held
	r.Lost += other.Lost
	r.Duplicated += other.Duplicated
}

// subjectOf returns the begin of the subject of a mail about a changelist.
func subjectOf(changelist int) string { return fmt.Sprintf("[criticizer] CL %d", changelist) }

func shortSubject(subject string) string {
	short, _, _ := strings.Cut(subject, ":")
	return short
}
