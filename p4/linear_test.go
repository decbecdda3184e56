package p4

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
)

// The work of diff and merge grows with the texts, not with the product of their
// edits: eight times the lines take less than twenty times as long. Quadratic work
// takes 64 times as long.
func TestDiffAndMergeAreLinear(t *testing.T) {
	for name, work := range map[string]func(before, source, after string){
		"diff":  func(before, _, after string) { unified(before, after, 10, atMargin) },
		"merge": func(before, source, after string) { merge(before, source, after) },
	} {
		t.Run(name, func(t *testing.T) {
			of := func(lines int) func() {
				before, source, after := alternating(lines)
				return func() { work(before, source, after) }
			}
			cputest.Linear(t, 20, 10*time.Millisecond, of(10_000), of(80_000))
		})
	}
}

// alternating makes texts of which every second line differs in all three.
func alternating(lines int) (before, source, after string) {
	var texts [3]strings.Builder
	for i := range lines {
		for j := range texts {
			if i%2 == 0 {
				fmt.Fprintf(&texts[j], "%x\n", i)
			} else {
				fmt.Fprintf(&texts[j], "%x%c\n", i, 'a'+j)
			}
		}
	}
	return texts[0].String(), texts[1].String(), texts[2].String()
}
