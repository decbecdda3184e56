package redaction

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
)

// The work is linear in the text for any text: the whole takes about four
// times as long as four readings of the first sixteenth. Quadratic work takes 64
// times as long, and the bound is between the two.
// BenchmarkAdversarial measures the seconds.
func TestWorkIsLinear(t *testing.T) {
	const size = 1 << 19
	for name, text := range adversarial(t, size) {
		t.Run(name, func(t *testing.T) { testLinear(t, text) })
	}
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

func testLinear(t *testing.T, text string) {
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
				if _, err := p.String(text); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cputest.Linear(t, most, 4*time.Millisecond, read(text[:len(text)/parts], repeat), read(text, 1))
}
