package redaction

import (
	"testing"
	"time"
)

// The work is linear in the text, whatever the text: the whole takes about four
// times as long as four times the first sixteenth, where work that is quadratic
// takes 64 times as long; the bound is in the middle. Time on this thread is
// counted, which other work on the machine does not lengthen; what little it does
// is allowed for by trying again. How many seconds it takes is the matter of
// BenchmarkAdversarial.
func TestWorkIsLinear(t *testing.T) {
	const (
		size   = 1 << 19
		parts  = 16
		repeat = 4 // of the part, for the clock of a thread may tick every few milliseconds
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
	for name, text := range adversarial(t, size) {
		t.Run(name, func(t *testing.T) {
			var few, whole time.Duration
			for range tries {
				few, whole = cost(text[:len(text)/parts], repeat), cost(text, 1)
				if whole < most*max(few, floor) {
					return
				}
			}
			t.Errorf("%d bytes take %s, %d times the first of %d parts %s: want less than %d times as much",
				len(text), whole, repeat, parts, few, most)
		})
	}
}
