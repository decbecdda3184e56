package redaction

import (
	"testing"
	"time"
)

// The work is linear in the text, whatever the text: sixteen times the bytes
// take about sixteen times the processor time, where work that is quadratic
// takes 256 times as much. The bound is near, for a search for one byte is fast
// and shows late. Time on this thread is counted, which other work on the
// machine does not lengthen; what little it does is allowed for by trying again.
// How many seconds it takes is the matter of BenchmarkAdversarial.
func TestWorkIsLinear(t *testing.T) {
	const (
		size  = 1 << 19
		parts = 16
		most  = 24 // times the cost of a part
		tries = 8
		floor = time.Millisecond // less is not measured well
	)
	p := newTestPipeline(t, Config{Emails: true, InternalIPs: true})
	cost := func(text string) time.Duration {
		return threadTime(func() {
			if _, err := p.String(text); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, text := range adversarial(t, size) {
		t.Run(name, func(t *testing.T) {
			var part, whole time.Duration
			for range tries {
				part, whole = cost(text[:len(text)/parts]), cost(text)
				if whole < most*max(part, floor) {
					return
				}
			}
			t.Errorf("%d bytes take %s, the first of %d parts of them %s: want less than %d times as much", len(text), whole, parts, part, most)
		})
	}
}
