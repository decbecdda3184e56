package redaction

import "strings"

// sectionEnd stands between the hunks and headers of a side: no detector reads
// across it, so no span does either.
const sectionEnd = "\n\x01\n"

// views splits raw into what the detectors read: for a diff its new and its old
// side, so that a secret is found whole although lines of the other side stand
// between its own. They are good until l is released.
func (l *layout) views(raw string, f form) []view {
	if f == formText && !looksLikeDiff(raw) {
		return []view{whole(raw)}
	}
	l.reset(raw)
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

// lineEndWithin is lineEnd, but looks no more than n bytes on.
func lineEndWithin(s string, at, n int) int { return lineEnd(s[:min(len(s), at+n)], at) }

// A layout collects the lines of a diff by side.
type layout struct {
	raw      string
	old, new side
	// lines are those of the hunk so far.
	lines []line
	// removed is set when one of them is only on the old side, bare when one has
	// no mark, so that they are no hunk but text below a header.
	removed, bare bool
	// keys is set if raw may hold a block of a key.
	keys bool
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
	text []byte
	segs []segment
	// sections are the begins of the sections in text.
	sections []int
	// open is set when the last line is of a section that may go on.
	open bool
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

// line takes raw[at:end], a header or a line of the hunk so far.
func (l *layout) line(at, end int) {
	n := line{at: at, end: end}
	switch text := l.raw[at:end]; {
	case text[0] == ' ':
		n.mark = 1
	case l.isHeader(text, end):
		l.flush()
		l.new.add(text, at)
		l.new.open = false
		return
	default:
		n.mark = prefixLen(text)
		n.removed = n.mark > 0 && (text[0] == '-' || text[0] == '<')
		n.added = n.mark > 0 && (text[0] == '+' || text[0] == '>')
		l.removed = l.removed || n.removed
		l.bare = l.bare || n.mark == 0 && text[0] != '\\' && strings.TrimSpace(text) != ""
	}
	l.lines = append(l.lines, n)
}

// flush ends a hunk. Of the old side only what is near a removed line is read:
// the rest is on the new side too.
func (l *layout) flush() {
	if l.removed && !l.bare {
		l.markNear()
	}
	for i := range l.lines {
		n := &l.lines[i]
		if l.bare {
			l.new.add(l.raw[n.at:n.end], n.at)
			continue
		}
		text := l.raw[n.at+n.mark : n.end]
		if !n.removed {
			l.new.add(text, n.at+n.mark)
		}
		if n.near && !n.added {
			l.old.add(text, n.at+n.mark)
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
	all := l.keys && (strings.Contains(hunk, "-----") || strings.Contains(hunk, "Private-Lines")) || end-begin >= minKeyLine || l.reachesUp(hunk)
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

// reachesUp reports whether the first removed line looks like a row of a table
// or a part of a document, whose head may stand far above it.
func (l *layout) reachesUp(hunk string) bool {
	i := 0
	for !l.lines[i].removed {
		i++
	}
	n := &l.lines[i]
	text := strings.TrimSpace(l.raw[n.at+n.mark : n.end])
	if mark := strings.IndexAny(text, separators); mark > 0 && mark < len(text)-1 && !strings.ContainsAny(text, "(){}=<>") {
		return true
	}
	return (strings.IndexByte(text, ':') > 0 || allIn(text, &lowerHex)) &&
		(strings.Contains(hunk, "kind: Secret") || strings.Contains(hunk, "$ANSIBLE_VAULT") || strings.Contains(hunk, `"kty"`))
}

// minKeyLine is the least width of the lines of a key whose begin is not shown.
const minKeyLine = 24

// isHeader reports whether text is structure of the diff and no line of a file.
func (l *layout) isHeader(text string, end int) bool {
	switch text[0] {
	case '-':
		return strings.HasPrefix(text, "--- ") && strings.HasPrefix(l.raw[end:], "+++ ")
	case '+':
		return strings.HasPrefix(text, "+++ ") && len(l.lines) == 0
	case '@', 'd', '=', 'I', '*':
		return strings.HasPrefix(text, "@@") || strings.HasPrefix(text, "diff --git ") || strings.HasPrefix(text, "==== ") ||
			strings.HasPrefix(text, "Index: ") || strings.HasPrefix(text, "***************")
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

// holdsHunk reports whether a line of raw begins as the header of a hunk. The
// signs are looked for, not the line ends before them: those are everywhere.
func holdsHunk(raw string) bool {
	const head = "@@ -"
	for at := 0; ; at += len(head) {
		i := strings.Index(raw[at:], head)
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || raw[at-1] == '\n' {
			return true
		}
	}
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
			return holdsHunk(raw)
		}
		at = end
	}
	return marked
}
