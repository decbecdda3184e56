package redaction

import (
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// sectionEnd separates the hunks and headers of a side. No detector reads across it.
const sectionEnd = "\n\x01\n"

// diffSides splits a diff into its new and its old side, so that a secret is
// found whole although lines of the other side stand between its lines.
type diffSides struct {
	raw      string
	old, new side
	// lines are the lines of the current hunk.
	lines []line
	// removed is set if one of the lines is only on the old side. unmarked is set
	// if one has no mark: the lines are no hunk but text below a header.
	removed, unmarked bool
	// keys is set if raw may hold a block of a key.
	keys bool
}

// A line is raw[at:end]. Its first mark bytes are the marks of the diff.
type line struct {
	at, end, mark  int
	removed, added bool
	// near is set for lines close to a removed line.
	near bool
}

// A side is the text of one side, without the marks, and where its lines are in raw.
type side struct {
	text []byte
	segs []segment
	// sections are the offsets where the sections begin in text.
	sections []int
	// open is set while the current section may go on.
	open bool
}

// diffSidesPool reuses the buffers: the sides of a diff are as long as the diff.
// Of the 4.5 MB allocated per megabyte of diff, 0.3 MB are left.
var diffSidesPool = sync.Pool{New: func() any { return new(diffSides) }}

// views returns what the detectors read. It is valid until release is called.
func (d *diffSides) views(raw string, f form) []view {
	if f == formText && !looksLikeDiff(raw) {
		return []view{whole(raw)}
	}
	*d = diffSides{
		raw:   raw,
		lines: d.lines[:0],
		new:   d.new.emptied(),
		old:   d.old.emptied(),
		keys:  strings.Contains(raw, "-----") || strings.Contains(raw, "Private-Lines"),
	}
	d.new.text = slices.Grow(d.new.text, len(raw))
	for at := 0; at < len(raw); {
		end := lineEnd(raw, at)
		d.add(at, end)
		at = end
	}
	d.flush()
	return append(d.new.views(), d.old.views()...)
}

// release makes the buffers available again.
func (d *diffSides) release() {
	d.raw = ""
	diffSidesPool.Put(d)
}

func (s *side) emptied() side {
	return side{text: s.text[:0], segs: s.segs[:0], sections: s.sections[:0]}
}

// views returns the side as a view, if it has text. The text of the view is the
// buffer itself: what is used after release has to be cloned.
func (s *side) views() []view {
	if len(s.text) == 0 {
		return nil
	}
	text := unsafe.String(unsafe.SliceData(s.text), len(s.text)) //nolint:gosec // s.text is only read until release
	return []view{{text, s.segs, s.sections}}
}

func (s *side) add(line string, at int) {
	if !s.open {
		if len(s.text) > 0 {
			s.text = append(s.text, sectionEnd...)
		}
		s.sections = append(s.sections, len(s.text))
		s.open = true
	}
	s.segs = append(s.segs, segment{len(s.text), len(line), at, len(line)})
	s.text = append(s.text, line...)
}

// add reads raw[at:end], a header or a line of the current hunk.
func (d *diffSides) add(at, end int) {
	n := line{at: at, end: end}
	switch text := d.raw[at:end]; {
	case text[0] == ' ':
		n.mark = 1
	case d.isHeader(text, end):
		d.flush()
		d.new.add(text, at)
		d.new.open = false
		return
	default:
		n.mark = markLen(text)
		n.removed = n.mark > 0 && (text[0] == '-' || text[0] == '<')
		n.added = n.mark > 0 && (text[0] == '+' || text[0] == '>')
		d.removed = d.removed || n.removed
		d.unmarked = d.unmarked || n.mark == 0 && text[0] != '\\' && strings.TrimSpace(text) != ""
	}
	d.lines = append(d.lines, n)
}

// flush ends a hunk. It keeps of the old side only what the new side does not have.
func (d *diffSides) flush() {
	if d.removed && !d.unmarked {
		d.markNear()
	}
	for i := range d.lines {
		n := &d.lines[i]
		if d.unmarked {
			d.new.add(d.raw[n.at:n.end], n.at)
			continue
		}
		text := d.raw[n.at+n.mark : n.end]
		if !n.removed {
			d.new.add(text, n.at+n.mark)
		}
		if n.near && !n.added {
			d.old.add(text, n.at+n.mark)
		} else if !n.added {
			d.old.open = false
		}
	}
	d.new.open, d.old.open = false, false
	d.lines, d.removed, d.unmarked = d.lines[:0], false, false
}

// nearby is how many lines around a removed line are read on the old side.
const nearby = 1

func (d *diffSides) markNear() {
	first := d.lines[0]
	hunk := d.raw[first.at:d.lines[len(d.lines)-1].end]
	begin, end := keyLine(d.raw, first.at+first.mark, first.end)
	all := d.keys && (strings.Contains(hunk, "-----") || strings.Contains(hunk, "Private-Lines")) || end-begin >= minKeyLine || d.reachesUp(hunk)
	left := 0
	mark := func(n *line) {
		switch {
		case n.removed:
			n.near, left = true, nearby
		case !n.added:
			n.near = n.near || all || left > 0
			left--
		}
	}
	for i := range d.lines {
		mark(&d.lines[i])
	}
	left = 0
	for i := range d.lines {
		mark(&d.lines[len(d.lines)-1-i])
	}
}

// reachesUp reports whether the first removed line looks like a row of a table
// or a part of a document, whose head may be far above it.
func (d *diffSides) reachesUp(hunk string) bool {
	n := &d.lines[slices.IndexFunc(d.lines, func(n line) bool { return n.removed })]
	text := strings.TrimSpace(d.raw[n.at+n.mark : n.end])
	if mark := strings.IndexAny(text, separators); mark > 0 && mark < len(text)-1 && !strings.ContainsAny(text, "(){}=<>") {
		return true
	}
	return (strings.IndexByte(text, ':') > 0 || allIn(text, &lowerHex)) &&
		(strings.Contains(hunk, "kind: Secret") || strings.Contains(hunk, "$ANSIBLE_VAULT") || strings.Contains(hunk, `"kty"`))
}

// isHeader reports whether text is structure of the diff and no line of a file.
func (d *diffSides) isHeader(text string, end int) bool {
	switch text[0] {
	case '-':
		return strings.HasPrefix(text, "--- ") && strings.HasPrefix(d.raw[end:], "+++ ")
	case '+':
		return strings.HasPrefix(text, "+++ ") && len(d.lines) == 0
	case '@', 'd', '=', 'I', '*':
		return beginsWith(text, hunkHeads)
	}
	return false
}

var (
	hunkHeads = []string{"@@", "diff --git ", "==== ", "Index: ", "***************"}
	diffHeads = []string{" ", "\\", "diff ", "index ", "====", "Index: ", "similarity ", "rename ", "new file ", "deleted file "}
)

// markLen returns the length of the marks before the text of a diff line: one
// byte in unified diffs, two in diffs that put a blank after the mark.
func markLen(text string) int {
	switch {
	case text == "":
		return 0
	case text[0] == '+', text[0] == '-', text[0] == ' ':
		return 1
	case text[0] != '<' && text[0] != '>' && text[0] != '!':
		return 0
	case len(text) > 1 && text[1] == ' ':
		return 2
	case len(strings.TrimSpace(text)) == 1:
		return 1
	}
	return 0
}

// hasHunk reports whether a line of raw begins like the header of a hunk. It looks
// for the header first, because line ends are frequent.
func hasHunk(raw string) bool {
	return strings.HasPrefix(raw, "@@ -") || strings.Contains(raw, "@@ -") && strings.Contains(raw, "\n@@ -")
}

// looksLikeDiff reports whether every line of raw is one of a diff. To lose the first
// column is harmless: no secret begins with a character that marks a line.
func looksLikeDiff(raw string) bool {
	marked := false
	for at := 0; at < len(raw); {
		end := lineEnd(raw, at)
		text := raw[at:end]
		switch {
		case len(strings.TrimSpace(text)) == 0:
		case strings.HasPrefix(text, "@@ -"):
			return true
		case text[0] != ' ' && markLen(text) > 0:
			marked = true
		case !beginsWith(text, diffHeads):
			return hasHunk(raw)
		}
		at = end
	}
	return marked
}

// lineEnd returns the offset after the line that begins at at and its LF.
func lineEnd(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s)
}

// lineEndWithin is lineEnd, but reads at most n bytes.
func lineEndWithin(s string, at, n int) int { return lineEnd(s[:min(len(s), at+n)], at) }

// lineBegin returns where the line of i begins, at most 512 bytes before i.
func lineBegin(s string, i int) int {
	from := max(0, i-512)
	return from + strings.LastIndexByte(s[from:i], '\n') + 1
}

// sectionBegin returns i-n, or the begin of the section of i if that is later.
func sectionBegin(s string, i, n int) int {
	from := max(0, i-n)
	if end := strings.LastIndex(s[from:i], sectionEnd); end >= 0 {
		from += end + len(sectionEnd)
	}
	return from
}
