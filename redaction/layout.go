package redaction

import "strings"

// sectionEnd stands between the hunks and headers of a side: no detector reads
// across it, so no span does either.
const sectionEnd = "\n\x01\n"

// views splits raw into what the detectors read: for a diff its new and its old
// side, so that a secret is found whole although lines of the other side stand
// between its own.
func views(raw string, f form) []view {
	if f == formText && !looksLikeDiff(raw) {
		return []view{whole(raw)}
	}
	l := layout{raw: raw}
	l.new.text.Grow(len(raw))
	l.new.segs = make([]segment, 0, strings.Count(raw, "\n")+1)
	for at := 0; at < len(raw); {
		end := lineEnd(raw, at)
		l.line(at, end)
		at = end
	}
	l.flush()
	return append(l.new.views(), l.old.views()...)
}

// lineEnd is the offset after the line that begins at at, its LF included.
func lineEnd(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s)
}

// A layout collects the lines of a diff by side.
type layout struct {
	raw      string
	old, new side
	// lines are those of the hunk so far.
	lines []line
	// removed is set when one of them is only on the old side, bare when one has
	// no mark, so that they are no hunk but text below a header.
	removed, bare bool
}

// A line is raw[at:end]; its first mark bytes say which side it is on.
type line struct {
	at, end, mark  int
	removed, added bool
	// near is set for lines close to a removed one.
	near bool
}

// A side is the text of one side and where its lines stand in raw.
type side struct {
	text strings.Builder
	segs []segment
	// sections are the begins of the sections in text.
	sections []int
	// open is set when the last line is of a section that may go on.
	open bool
}

func (s *side) add(line string, at int) {
	if !s.open {
		if s.text.Len() > 0 {
			s.text.WriteString(sectionEnd)
		}
		s.sections = append(s.sections, s.text.Len())
		s.open = true
	}
	s.segs = append(s.segs, segment{s.text.Len(), len(line), at, len(line)})
	s.text.WriteString(line)
}

func (s *side) views() []view {
	if s.text.Len() == 0 {
		return nil
	}
	return []view{{s.text.String(), s.segs, s.sections}}
}

func (l *layout) line(at, end int) {
	text := l.raw[at:end]
	if text[0] != ' ' && l.isHeader(text, end) {
		l.flush()
		l.new.add(text, at)
		l.new.open = false
		return
	}
	n := line{at: at, end: end, mark: prefixLen(text)}
	if n.mark > 0 {
		n.removed = text[0] == '-' || text[0] == '<'
		n.added = text[0] == '+' || text[0] == '>'
	} else if text[0] != '\\' && len(strings.TrimSpace(text)) > 0 {
		l.bare = true
	}
	l.removed = l.removed || n.removed
	l.lines = append(l.lines, n)
}

// flush ends a hunk. Of the old side only what is near a removed line is read:
// the rest is on the new side too.
func (l *layout) flush() {
	if l.removed && !l.bare {
		if l.old.segs == nil {
			l.old.text.Grow(len(l.raw) / 4)
			l.old.segs = make([]segment, 0, cap(l.new.segs)/4+1)
		}
		l.markNear()
	}
	for _, n := range l.lines {
		switch {
		case l.bare:
			l.new.add(l.raw[n.at:n.end], n.at)
			continue
		case !n.removed:
			l.new.add(l.raw[n.at+n.mark:n.end], n.at+n.mark)
		}
		if n.near && !n.added {
			l.old.add(l.raw[n.at+n.mark:n.end], n.at+n.mark)
		} else if !n.added {
			l.old.open = false
		}
	}
	l.new.open, l.old.open = false, false
	l.lines, l.removed, l.bare = l.lines[:0], false, false
}

// nearby is how many lines of its side away what belongs to a removed line may
// stand. Key blocks are longer: a hunk that has one is read whole.
const nearby = 1

func (l *layout) markNear() {
	first := l.lines[0]
	hunk := l.raw[first.at:l.lines[len(l.lines)-1].end]
	begin, end := keyLine(l.raw, first.at+first.mark, first.end)
	all := strings.Contains(hunk, "-----") || strings.Contains(hunk, "Private-Lines") || end-begin >= minKeyLine
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
	for i := range l.lines {
		mark(&l.lines[i])
	}
	left = 0
	for i := range l.lines {
		mark(&l.lines[len(l.lines)-1-i])
	}
}

// minKeyLine is the least width of the lines of a key whose begin is not shown.
const minKeyLine = 24

// isHeader reports whether text is structure of the diff and no line of a file.
func (l *layout) isHeader(text string, end int) bool {
	switch {
	case strings.HasPrefix(text, "@@"), strings.HasPrefix(text, "diff --git "), strings.HasPrefix(text, "==== "),
		strings.HasPrefix(text, "Index: "), strings.HasPrefix(text, "***************"):
		return true
	case strings.HasPrefix(text, "--- "):
		return strings.HasPrefix(l.raw[end:], "+++ ")
	case strings.HasPrefix(text, "+++ "):
		return len(l.lines) == 0
	}
	return false
}

// prefixLen is the number of bytes of a diff line before the line itself:
// one in unified diffs, two in those that put a blank after the mark.
func prefixLen(text string) int {
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

// looksLikeDiff reports whether every line of raw is one of a diff. Taking
// a text for a diff costs its first column; that is harmless, for the
// characters of that column are in no secret that begins there.
func looksLikeDiff(raw string) bool {
	marked := false
	for at := 0; at < len(raw); {
		end := lineEnd(raw, at)
		text := raw[at:end]
		switch {
		case len(strings.TrimSpace(text)) == 0:
		case strings.HasPrefix(text, "@@ -"):
			return true
		case text[0] != ' ' && prefixLen(text) > 0:
			marked = true
		case text[0] == ' ', text[0] == '\\', strings.HasPrefix(text, "diff "), strings.HasPrefix(text, "index "),
			strings.HasPrefix(text, "===="), strings.HasPrefix(text, "Index: "), strings.HasPrefix(text, "similarity "),
			strings.HasPrefix(text, "rename "), strings.HasPrefix(text, "new file "), strings.HasPrefix(text, "deleted file "):
		default:
			return strings.HasPrefix(raw, "@@ -") || strings.Contains(raw, "\n@@ -")
		}
		at = end
	}
	return marked
}

// readable reports whether s is text: it may hold NULs beside every byte, as
// UTF-16 does, and bytes of older encodings, but is not mostly neither.
func readable(s string) bool {
	control := 0
	for i := range len(s) {
		control += int(controlByte[s[i]])
	}
	nul := strings.Count(s, "\x00")
	control -= nul
	if control*20 > len(s) || nul*2 > len(s)+2 {
		return false
	}
	return nul == 0 || nul*5 >= len(s)*2
}

// controlByte is 1 for the control characters that text has no use for.
var controlByte = func() (t [256]uint8) {
	for c := range ' ' {
		if !strings.ContainsRune("\t\n\v\f\r\b\x1b", c) {
			t[c] = 1
		}
	}
	return t
}()
