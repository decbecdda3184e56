package llm

import (
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The work of anchoring a quote grows with the file, not with its square, also if
// the quote nearly matches everywhere: eight times the lines take less than twenty
// times as long. The test measures processor time of its thread, and tries again.
func TestAnchoringIsLinear(t *testing.T) {
	cost := func(lines int) time.Duration {
		quote := strings.Repeat("same line\n", lines/2) + "another line\n"
		hunks := []hunk{{lines: slices.Repeat([]line{{mark: '+', text: "same line"}}, lines)}}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := usedTime(t)
		anchor(hunks, quote, 1)
		return usedTime(t) - before
	}
	const (
		tries = 4
		floor = 10 * time.Millisecond // less is not measured well
	)
	var few, many time.Duration
	for range tries {
		few, many = cost(4_000), cost(32_000)
		if many < 20*max(few, floor) {
			return
		}
	}
	t.Errorf("anchoring in 32,000 lines takes %s, in 4,000 lines %s", many, few)
}

func usedTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
