package redaction

import "strings"

// A workspace holds the buffers of a detector, which are used again for the next
// text, and a cache of the strengths of names.
type workspace struct {
	detections []detection
	// commandEnd is the end of the last line that was read for each command.
	commandEnd []int
	// strengths caches strengthOf by the hash of the identifier.
	strengths [1 << strengthBits]knownStrength
	// adjacent counts the consecutive detections that nearly touch.
	adjacent int
}

// A detection is a range of a view that holds a secret.
type detection struct {
	start, end  int
	class, rule string
}

const strengthBits = 9

type knownStrength struct {
	ident    string
	strength strength
}

func (e *engine) workspace() *workspace {
	if w, ok := e.workspaces.Get().(*workspace); ok {
		return w
	}
	return &workspace{commandEnd: make([]int, len(e.commands))}
}

// clear makes the workspace ready for another view.
func (w *workspace) clear() {
	w.detections, w.adjacent = w.detections[:0], 0
	clear(w.commandEnd)
}

// More than maxAdjacent detections in a row that are at most adjacentGap bytes
// apart are masked as one: no readable text looks so, and the number of spans
// stays small.
const (
	adjacentGap = 4
	maxAdjacent = 1 << 10
)

// isDense reports whether a detection that begins at start continues such a row.
func (d *detector) isDense(start int) bool {
	n := len(d.detections)
	if n == 0 || start < d.detections[n-1].start || start > d.detections[n-1].end+adjacentGap || strings.Contains(d.s[min(start, d.detections[n-1].end):start], "\n") {
		d.adjacent = 0
		return false
	}
	d.adjacent++
	return d.adjacent > maxAdjacent
}

// extend moves the end of the last detection to end.
func (w *workspace) extend(end int) {
	final := &w.detections[len(w.detections)-1]
	final.end = max(final.end, end)
}

// strengthOf returns the strength of ident, from the cache if possible: the same
// names occur again and again.
func (d *detector) strengthOf(ident string) strength {
	h := uint32(0x811c9dc5)
	for i := range len(ident) {
		h = (h ^ uint32(ident[i])) * 0x01000193
	}
	known := &d.strengths[h>>(32-strengthBits)]
	if known.ident != ident {
		*known = knownStrength{strings.Clone(ident), d.computeStrength(ident)}
	}
	return known.strength
}

// A rescanLimit keeps the work of a matcher linear where names, prefixes or
// schemes are part of the values of others, as in key=key=key=: each would be
// read to the same end. It covers a stretch of text in which the ranges read
// overlap.
type rescanLimit struct {
	begin, end int
	read       int // bytes, counted each time they are read
}

// maxReads is how often a byte may be read on average.
const maxReads = 8

// exceeded notes that s[begin:end] is read and reports whether its stretch was
// read too often. Such text is masked without parsing it.
func (l *rescanLimit) exceeded(begin, end int) bool {
	if begin >= l.end {
		*l = rescanLimit{begin: begin}
	}
	l.end = max(l.end, end)
	l.read += end - begin
	return l.read > maxReads*(l.end-l.begin)
}
