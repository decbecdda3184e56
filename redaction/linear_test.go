package redaction

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/review"
)

// The work is linear in the text for any text: the whole takes about four
// times as long as four readings of the first sixteenth. Quadratic work takes 64
// times as long, and the bound is between the two.
// BenchmarkAdversarial measures the seconds.
func TestWorkIsLinear(t *testing.T) {
	const size = 1 << 17
	for name, text := range adversarial(t, size) {
		t.Run(name, func(t *testing.T) { testLinear(t, text) })
	}
}

// A text that needs more work than the limit is masked from there on, and its lines are hidden.
func TestWorkLimitMasksTheRest(t *testing.T) {
	p := newTestPipeline(t, Config{})
	const rest = "the last line says nothing"
	text := strings.Repeat("password(token(secret(", 1<<17) + "\n" + rest + "\n"
	got, err := p.String(text)
	if err != nil || strings.Contains(got.String(), rest) {
		t.Errorf("the text behind the limit is not masked: %v", err)
	}
	diff := "@@ -0,0 +1,2 @@\n+" + strings.Replace(text, "\n", "\n+", 1)
	c, err := p.Change(review.Change{Files: []review.File{{DepotPath: "//depot/a.txt", Diff: diff}}})
	if err != nil {
		t.Fatal(err)
	}
	if h := c.Files[0].Hidden; len(h) == 0 || h[len(h)-1].Last != 3 {
		t.Errorf("hidden lines %v, want the last one, 3, in them", h)
	}
}

// Each line behind the limit is masked with the rest of the text as its value, which is not read for each line.
func TestWorkBehindLimitIsLinear(t *testing.T) {
	const size, part = 1 << 20, 1 << 16
	p := newTestPipeline(t, Config{})
	change := func(size int) func() {
		diff := "@@ -0,0 +1 @@\n" + strings.Repeat("+password='a\n", size/13)
		return func() {
			if _, err := p.Change(review.Change{Files: []review.File{{DepotPath: "//depot/a.unk", Diff: diff}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cputest.Linear(t, 4*size/part, 4*time.Millisecond, change(part), change(size))
}

// TestCorpusWorkIsLinear reads the inputs of the outside corpus that were slow in
// other detectors.
func TestCorpusWorkIsLinear(t *testing.T) {
	for _, name := range corpusFiles(t, "adv_*.jsonl.gz") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			var s sample
			if err := json.Unmarshal(unzip(t, name), &s); err != nil {
				t.Fatal(err)
			}
			testLinear(t, s.Text[:min(len(s.Text), 1<<19)])
		})
	}
}

// The work on documents is linear, whatever their structure.
func TestWorkOnDocumentsIsLinear(t *testing.T) {
	const size = 1 << 17
	for _, file := range []string{"a.yaml", "a.json", "a.tf", "a.toml"} {
		for _, piece := range []string{"[", "{\"a\":", "a: ", "- - ", "a:\n", "&a ", "a: *a\n", "a: {{ x }}\n", "a: \"{{\n", "\"", "'", "a: \"\\\"\n", "a: 'b''\n", "a b {} ", "a ", "[[a]]\n", "a.b.", "a = \"${", "a: |\n  b\n", "passwords: {\n", "passwords:\n- ", "a(", "[0,"} {
			t.Run(file+" "+piece, func(t *testing.T) { testLinearFile(t, file, strings.Repeat(piece, size/len(piece))) })
		}
	}
}

func testLinear(t *testing.T, text string) { testLinearFile(t, "", text) }

func testLinearFile(t *testing.T, file, text string) {
	t.Helper()
	const (
		parts  = 16
		repeat = 4 // of the part, because the clock of a thread may tick every few milliseconds
		most   = 16
	)
	p := newTestPipeline(t, Config{Emails: true, InternalIPs: true})
	read := func(text string, times int) func() {
		return func() {
			for range times {
				if _, _, _, err := p.Explain(text, file, false); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cputest.Linear(t, most, 4*time.Millisecond, read(text[:len(text)/parts], repeat), read(text, 1))
}
