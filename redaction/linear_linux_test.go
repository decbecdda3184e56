package redaction

import (
	"testing"
	"time"
)

// The work is linear in the text, whatever the text: four times the bytes take
// about four times the processor time, where work that is quadratic takes
// sixteen. Time on this thread is counted, which other work on the machine does
// not lengthen; what little it does is allowed for by trying again. How many
// seconds it takes is the matter of BenchmarkAdversarial.
func TestWorkIsLinear(t *testing.T) {
	const (
		size  = 512 << 10
		most  = 9 // the middle between linear and quadratic
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
				part, whole = cost(text[:len(text)/4]), cost(text)
				if whole < most*max(part, floor) {
					return
				}
			}
			t.Errorf("%d bytes take %s, a quarter of them %s: want less than %d times as much", len(text), whole, part, most)
		})
	}
}
