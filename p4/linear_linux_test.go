package p4

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The work of diff and merge grows with the texts, not with the product of their
// edits: eight times the lines take less than twenty times as long. Quadratic work
// takes 64 times as long. The test measures processor time of its thread, which
// other work on the machine changes little, and tries again.
func TestDiffAndMergeAreLinear(t *testing.T) {
	for name, work := range map[string]func(before, source, after string){
		"diff":  func(before, _, after string) { unified(before, after, 10, atMargin) },
		"merge": func(before, source, after string) { merge(before, source, after) },
	} {
		cost := func(lines int) time.Duration {
			before, source, after := alternating(lines)
			return threadTime(func() { work(before, source, after) })
		}
		const (
			tries = 4
			floor = 10 * time.Millisecond // less is not measured well
		)
		var few, many time.Duration
		for range tries {
			few, many = cost(10_000), cost(80_000)
			if many < 20*max(few, floor) {
				break
			}
		}
		if many >= 20*max(few, floor) {
			t.Errorf("%s of 80,000 lines takes %s, of 10,000 lines %s", name, many, few)
		}
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

// threadTime returns the processor time that f takes on its thread.
func threadTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
			panic(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	f()
	return used() - before
}

// BenchmarkMerge merges texts of 10 MB that differ in every second line.
func BenchmarkMerge(b *testing.B) {
	before, source, after := alternating(1_500_000)
	b.SetBytes(int64(len(after)))
	for b.Loop() {
		merge(before, source, after)
	}
}
