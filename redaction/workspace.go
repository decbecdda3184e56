package redaction

import "strings"

// A workspace is what a detector works in: buffers that are used again from text
// to text, and what was learned of names.
type workspace struct {
	finds []find
	// commandEnd is the end of the last line that was read for each command.
	commandEnd []int
	// strengths are what the names promise that were met last, by their hash.
	strengths [1 << strengthBits]knownStrength
	// close counts the finds in a row that nearly touch.
	close int
}

// A find is a range of a view that holds a secret.
type find struct {
	start, end  int
	class, rule string
}

const strengthBits = 9

type knownStrength struct {
	ident    string
	strength strength
}

func (e *engine) workspace() *workspace {
	if d, ok := e.workspaces.Get().(*workspace); ok {
		return d
	}
	return &workspace{commandEnd: make([]int, len(e.commands))}
}

// clear makes the workspace ready for another view.
func (d *workspace) clear() {
	d.finds, d.close = d.finds[:0], 0
	clear(d.commandEnd)
}

// Finds that nearly touch, one after the other thousands of times, are masked
// as one: no text that anybody wants to read is such.
const (
	nearGap  = 4
	maxClose = 1 << 10
)

// dense reports whether a find that begins at start goes with those before it
// on its line.
func (d *detector) dense(start int) bool {
	n := len(d.finds)
	if n == 0 || start < d.finds[n-1].start || start > d.finds[n-1].end+nearGap || strings.Contains(d.s[min(start, d.finds[n-1].end):start], "\n") {
		d.close = 0
		return false
	}
	d.close++
	return d.close > maxClose
}

// extend masks up to end what the last find begins.
func (d *workspace) extend(end int) {
	final := &d.finds[len(d.finds)-1]
	final.end = max(final.end, end)
}

// strengthOf is what ident promises. Names come again and again, so it is
// looked up before it is worked out.
func (d *detector) strengthOf(ident string) strength {
	h := uint32(0x811c9dc5)
	for i := range len(ident) {
		h = (h ^ uint32(ident[i])) * 0x01000193
	}
	known := &d.strengths[h>>(32-strengthBits)]
	if known.ident != ident {
		*known = knownStrength{strings.Clone(ident), d.weigh(ident)}
	}
	return known.strength
}
