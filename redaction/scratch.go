package redaction

import (
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// The sides of a diff are copies without the marks of its lines, as long as the
// diff and with a segment per line. Their buffers are used again: of the 4.5 MB
// that a megabyte of diff took, 0.3 are left, and a fifth of the time.
var layouts = sync.Pool{New: func() any { return new(layout) }}

// reset makes l ready for another text in the buffers it has.
func (l *layout) reset(raw string) {
	*l = layout{
		raw:   raw,
		lines: l.lines[:0],
		new:   l.new.emptied(),
		old:   l.old.emptied(),
		keys:  strings.Contains(raw, "-----") || strings.Contains(raw, "Private-Lines"),
	}
	l.new.text = slices.Grow(l.new.text, len(raw))
}

// release gives the buffers of l back: no view of it may be read after that.
func (l *layout) release() {
	l.raw = ""
	layouts.Put(l)
}

func (s *side) emptied() side {
	return side{text: s.text[:0], segs: s.segs[:0], sections: s.sections[:0]}
}

// views is the side as a view, if there is anything on it. Its text is the
// buffer itself, which nobody writes to before l is released; what outlives the
// view has to be cloned.
func (s *side) views() []view {
	if len(s.text) == 0 {
		return nil
	}
	text := unsafe.String(unsafe.SliceData(s.text), len(s.text)) //nolint:gosec // audited: s.text is read only until l is released
	return []view{{text, s.segs, s.sections}}
}
