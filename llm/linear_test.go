package llm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
)

// The work of anchoring a quote grows with the file, not with its square, even if
// the quote nearly matches everywhere: eight times the lines take less than twenty
// times as long.
func TestAnchoringIsLinear(t *testing.T) {
	in := func(lines int) func() {
		quote := strings.Repeat("same line\n", lines/2) + "another line\n"
		hunks := []hunk{{lines: slices.Repeat([]line{{mark: '+', text: "same line"}}, lines)}}
		return func() { anchor(hunks, quote, 1) }
	}
	cputest.Linear(t, 20, 10*time.Millisecond, in(4_000), in(32_000))
}
