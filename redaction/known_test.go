package redaction

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The longest value that a text begins with is found, even if values are prefixes of
// others.
func TestLongestKnownValueIsFound(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("abAB19"[draw.IntN(6)])
		}
		return b.String()
	}
	for round := range 200 {
		stem := "Xk29dkQ0" + word(20)
		var v values
		for range 30 {
			n := minKnown + draw.IntN(len(stem)-minKnown)
			v.add([]span{{value: stem[:n] + word(draw.IntN(3))}}, isUnmistakable)
		}
		for range 50 {
			text := stem[:minKnown+draw.IntN(len(stem)-minKnown)] + word(4)
			want := ""
			for value, s := range v.found {
				if s != nil && strings.HasPrefix(text, value) && isWhole(text, 0, len(value)) && len(value) > len(want) {
					want = value
				}
			}
			pt := part{raw: text}
			if pt.maskKnown(&v); len(pt.spans) > 0 != (want != "") || want != "" && pt.spans[0].end != len(want) {
				t.Fatalf("round %d: %q begins with %q, masked %v", round, text, want, pt.spans)
			}
		}
	}
}
