// Package mutants measures the tests of the packages that decide: it changes one operator of
// a package at a time, and a test has to fail.
//
// All changes are compiled into one test program and made one at a time, so that a mutant
// takes the time of its tests and not of a build. A mutant runs only the tests that reach it.
// The changes of Go are those of gremlins, which tools/mutants.txt calls by their names. In
// the queries of package store, and, or, exists, null and comparisons are changed, too.
package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is the root of the repository, seen from this package.
const root = "../.."

// packages are the measured packages, their files, without .go, and the packages of their
// tests. Survivors among the queries need no line in tools/mutants.txt: those of a join or an
// order are often equal to the query.
var packages = []struct{ dir, files, tests string }{
	{"internal/failure", ".*", "internal/failure"},
	{"p4", "allowlist|enforce|pathpattern", "p4"},
	{"llm", "transport", "llm"},
	{"redaction", "change|pipeline|text", "redaction"},
	{"activities", ".*", "activities"},
	{"workflows", ".*", "workflows"},
	{"store", ".*", "store"},
	{"store/db", `.*\.sql`, "store"}, // the queries
}

// threshold is the share of killed mutants, in percent, of those that a test kills or
// lets survive.
const threshold = 85

func TestMutants(t *testing.T) {
	wanted := os.Getenv("CRITICIZER_MUTANTS")
	if wanted == "" {
		t.Skip("mutants: CRITICIZER_MUTANTS is not set; make mutants sets it")
	}
	listed, err := os.ReadFile(filepath.Join(root, "tools/mutants.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if wanted != "all" && !slices.Contains(strings.Fields(wanted), p.dir) {
			continue
		}
		if only := os.Getenv("CRITICIZER_MUTANT_FILES"); only != "" {
			p.files = only
		}
		t.Run(p.dir, func(t *testing.T) {
			r := newRun(t, p.dir, p.files, p.tests)
			r.measure(t)
			if share := r.share(); share < threshold {
				t.Errorf("%.1f %% of the mutants are killed, want %d", share, threshold)
			}
			report := t.Errorf
			if p.tests != p.dir {
				report = t.Logf
			}
			for _, m := range r.unlisted(string(listed)) {
				report("%s:%d: %s survives: %s", m.file, m.line, m.mutator, m.text)
			}
		})
	}
}

// unlisted returns the survivors that the lines of tools/mutants.txt do not have: each has a
// file, a mutator, a part of the mutated line and the reason.
func (r *run) unlisted(lines string) (found []mutant) {
	for _, m := range r.mutants {
		listed := false
		for line := range strings.Lines(lines) {
			entry := strings.Split(line, "\t")
			listed = listed || entry[0] == m.file && entry[1] == m.mutator && strings.Contains(m.text, entry[2])
		}
		if r.results[m.id] == survived && !listed {
			found = append(found, m)
		}
	}
	return found
}

// Each line of tools/mutants.txt names code that exists.
func TestListNamesCode(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join(root, "tools/mutants.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		entry := strings.Split(strings.TrimSpace(line), "\t")
		if code, err := os.ReadFile(filepath.Join(root, entry[0])); err != nil || len(entry) != 4 || !strings.Contains(string(code), entry[2]) {
			t.Errorf("%q names no code: %v", line, err)
		}
	}
}

// A result is what the tests say about a mutant.
type result string

const (
	killed   result = "killed"
	survived result = "survived"
	timedOut result = "timed out"
	unseen   result = "not covered"
)

// A testCase is a test and how long it takes.
type testCase struct {
	name string
	took time.Duration
}

// A run measures the mutants of one package.
type run struct {
	source
	tests   string // the package of the tests
	program string
	reached map[int][]testCase // by mutant
	results map[int]result
	start   time.Duration // a mutant's time limit, beside that of its tests
	log     io.Writer
}

// newRun compiles the mutants of a package.
func newRun(tb testing.TB, dir, files, tests string) *run {
	tb.Helper()
	r := &run{
		source: source{dir: dir, fset: token.NewFileSet()}, tests: tests,
		reached: map[int][]testCase{}, results: map[int]result{}, start: 20 * time.Second, log: tb.Output(),
	}
	mutated, err := r.mutate(regexp.MustCompile("^(" + files + ")$"))
	if err != nil {
		tb.Fatal(err)
	}
	scratch := tb.TempDir()
	overlay := map[string]string{}
	for path, body := range mutated {
		absolute, err := filepath.Abs(path)
		if err != nil {
			tb.Fatal(err)
		}
		overlay[absolute] = filepath.Join(scratch, filepath.Base(path))
		if err := os.WriteFile(overlay[absolute], body, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	encoded, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		tb.Fatal(err)
	}
	replacements := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(replacements, encoded, 0o600); err != nil {
		tb.Fatal(err)
	}
	r.program = filepath.Join(scratch, "tests")
	if _, err := goCommand("test", "-c", "-vet=off", "-overlay", replacements, "-o", r.program, "./"+tests); err != nil {
		tb.Fatal(err)
	}
	return r
}

// measure runs the tests of each mutant.
func (r *run) measure(tb testing.TB) {
	tb.Helper()
	begun := time.Now()
	if err := r.trace(filepath.Join(tb.TempDir(), "trace")); err != nil {
		tb.Fatal(err)
	}
	for _, m := range r.mutants {
		result := r.try(m)
		r.results[m.id] = result
		fmt.Fprintf(r.log, "%-11s %s:%d %s: %s\n", result, m.file, m.line, m.mutator, m.text)
	}
	r.summary(time.Since(begun))
}

// trace runs each test alone and without a mutant, and notes the mutants that it reaches.
func (r *run) trace(file string) error {
	names, err := r.test(nil, time.Minute, "-test.list", "^(Test|Fuzz|Example)")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(names)) {
		begun := time.Now()
		if out, err := r.test([]string{"CRITICIZER_MUTANT_TRACE=" + file}, 10*time.Minute, "-test.run", "^"+name+"$"); err != nil {
			return fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, out)
		}
		ids, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // reaches none
		}
		if err != nil {
			return err
		}
		seen := map[int]bool{}
		for line := range strings.FieldsSeq(string(ids)) {
			var id int
			if _, err := fmt.Sscan(line, &id); err != nil {
				return err
			}
			seen[id] = true
		}
		for id := range seen {
			r.reached[id] = append(r.reached[id], testCase{name, time.Since(begun)})
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// try runs the tests that reach a mutant: first the fastest few, which kill most.
func (r *run) try(m mutant) result {
	tests := r.reached[m.id]
	if len(tests) == 0 {
		return unseen
	}
	slices.SortFunc(tests, func(a, b testCase) int { return int(a.took - b.took) })
	first := min(len(tests), 4)
	for _, some := range [][]testCase{tests[:first], tests[first:]} {
		if len(some) == 0 {
			continue
		}
		limit := r.start
		names := make([]string, len(some))
		for i, test := range some {
			names[i] = test.name
			limit += 5 * test.took
		}
		_, err := r.test([]string{fmt.Sprint("CRITICIZER_MUTANT=", m.id)}, limit, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return timedOut
		case err != nil:
			return killed
		}
	}
	return survived
}

// test runs the test program. The error is context.DeadlineExceeded after limit.
func (r *run) test(env []string, limit time.Duration, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(root, r.tests), append(os.Environ(), env...), time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}

// share returns the percentage of killed mutants.
func (r *run) share() float64 {
	counts := map[result]int{}
	for _, result := range r.results {
		counts[result]++
	}
	return 100 * float64(counts[killed]) / float64(max(1, counts[killed]+counts[survived]))
}

// summary writes the results by file.
func (r *run) summary(took time.Duration) {
	counts := map[string]map[result]int{}
	for _, m := range r.mutants {
		for _, name := range []string{m.file, r.dir} {
			if counts[name] == nil {
				counts[name] = map[result]int{}
			}
			counts[name][r.results[m.id]]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(r.log, "%-32s %3d killed %3d survived %3d timed out %3d not covered\n", name, c[killed], c[survived], c[timedOut], c[unseen])
	}
	fmt.Fprintf(r.log, "%s: %.1f %% killed, in %s\n", r.dir, r.share(), took.Round(time.Second))
}

// The sample has mutants of which the results are known.
func TestSample(t *testing.T) {
	t.Parallel()
	r := newRun(t, "tools/mutants/testdata/sample", ".*", "tools/mutants/testdata/sample")
	r.start = 10 * time.Second
	r.measure(t)
	var got []string
	for _, m := range r.mutants {
		got = append(got, fmt.Sprint(m.line, " ", m.mutator, " ", r.results[m.id]))
	}
	want := []string{
		"11 INCREMENT_DECREMENT killed",
		"12 ARITHMETIC_BASE killed",
		"12 CONDITIONALS_NEGATION killed",
		"12 ARITHMETIC_BASE killed",
		"16 CONDITIONALS_BOUNDARY survived",
		"16 CONDITIONALS_NEGATION killed",
		"19 INVERT_NEGATIVES survived",
		"25 CONDITIONALS_BOUNDARY killed",
		"25 CONDITIONALS_NEGATION killed",
		"25 INCREMENT_DECREMENT timed out",
		"26 INCREMENT_DECREMENT killed",
		"31 ARITHMETIC_BASE not covered",
	}
	if !slices.Equal(got, want) {
		t.Errorf("results:\n%s", strings.Join(got, "\n"))
	}
	list := r.dir + "/sample.go\tCONDITIONALS_BOUNDARY\tif n > top\tequal either way"
	if unlisted := r.unlisted(list); len(unlisted) != 1 || unlisted[0].mutator != "INVERT_NEGATIVES" {
		t.Errorf("not listed: %v", unlisted)
	}
}
