package redaction

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"
)

// The work is linear in the text, whatever the text: the whole takes about four
// times as long as four readings of the first sixteenth. Quadratic work takes 64
// times as long, and the bound is between the two. The test measures processor
// time of its thread, which other work on the machine changes little, and tries
// again. BenchmarkAdversarial measures the seconds.
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
		tries  = 4
		floor  = 4 * time.Millisecond // less is not measured well
	)
	p := newTestPipeline(t, Config{Emails: true, InternalIPs: true})
	cost := func(text string, times int) time.Duration {
		return threadTime(func() {
			for range times {
				if _, err := p.String(text); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	var few, whole time.Duration
	for range tries {
		few, whole = cost(text[:len(text)/parts], repeat), cost(text, 1)
		if whole < most*max(few, floor) {
			return
		}
	}
	t.Errorf("%d bytes take %s, %d times the first of %d parts %s: want less than %d times as much",
		len(text), whole, repeat, parts, few, most)
}
