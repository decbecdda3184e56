package mail

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// Each reply of refusals.txt is decided by the row above it, and each row has a reply and a
// source. The phrases of a later row do not decide what an earlier one should.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range rules {
		if len(row.examples) == 0 || row.sources == 0 {
			t.Errorf("row %d (%s) has %d replies and %d sources", row.number, row.fault, len(row.examples), row.sources)
		}
		for _, example := range row.examples {
			at, text, _ := strings.Cut(example, " ")
			code, err := strconv.Atoi(text[:3])
			testkit.NoError(t, err)
			if got := newReply(step(at), code, text[4:]).rule(); got.number != row.number || !slices.Contains(steps, step(at)) {
				t.Errorf("%s: %s by row %d, want row %d (%s)", example, got.fault, got.number, row.number, row.fault)
			}
		}
	}
}
