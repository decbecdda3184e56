package redaction

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// views returns what the detectors read: raw itself, or the new and the old side of a
// diff, so that a secret is found whole although lines of the other side are between its
// lines. The old side has only hunks that remove something.
func views(raw string, f form) []*view {
	if f == formText && !looksLikeDiff(raw) {
		return []*view{whole(raw)}
	}
	var sides [2]viewBuilder
	for i := range sides {
		sides[i].text.Grow(len(raw))
		sides[i].segs = make([]segment, 0, strings.Count(raw, "\n"))
	}
	for at := 0; at < len(raw); {
		end := lex.LineEnd(raw, at)
		if isHeader(raw, at, end) {
			sides[0].section()
			sides[0].add(raw[at:end], at, end-at)
			at = end
			continue
		}
		for next := 0; end < len(raw); end = next {
			if next = lex.LineEnd(raw, end); isHeader(raw, end, next) {
				break
			}
		}
		addHunk(&sides, raw, at, end)
		at = end
	}
	var out []*view
	for i := range sides {
		if v := sides[i].view(nil); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// section begins a section of a side.
func (b *viewBuilder) section() {
	if b.text.Len() > 0 {
		b.text.WriteString(lex.SectionEnd)
	}
	b.sections = append(b.sections, b.text.Len())
}

// addHunk adds the lines of raw[at:end] without their marks to the new and the old
// side. A line without a mark shows that the lines are not a hunk, but text.
func addHunk(sides *[2]viewBuilder, raw string, at, end int) {
	sides[0].section()
	removes := false
	for i, next := at, 0; i < end; i = next {
		next = lex.LineEnd(raw, i)
		line := raw[i:next]
		if markLen(line) == 0 && line[0] != '\\' && strings.TrimSpace(line) != "" {
			sides[0].add(raw[at:end], at, end-at)
			return
		}
		removes = removes || isRemoved(line)
	}
	if removes {
		sides[1].section()
	}
	for next := 0; at < end; at = next {
		next = lex.LineEnd(raw, at)
		line := raw[at:next]
		mark := markLen(line)
		if !isRemoved(line) {
			sides[0].add(line[mark:], at+mark, len(line)-mark)
		}
		if removes && line[0] != '+' && line[0] != '>' {
			sides[1].add(line[mark:], at+mark, len(line)-mark)
		}
	}
}

func isRemoved(line string) bool { return line[0] == '-' || line[0] == '<' }

// isHeader reports whether raw[at:end] is structure of the diff and no line of a file.
func isHeader(raw string, at, end int) bool {
	switch raw[at] {
	case '-':
		return strings.HasPrefix(raw[at:], "--- ") && strings.HasPrefix(raw[end:], "+++ ")
	case '+':
		return strings.HasPrefix(raw[at:], "+++ ") && strings.HasPrefix(raw[strings.LastIndexByte(raw[:max(0, at-1)], '\n')+1:], "--- ")
	}
	return lex.BeginsWith(raw[at:end], hunkHeads)
}

var hunkHeads = []string{"@@", "diff --git ", "==== ", "Index: "}

// markLen returns the length of the mark before the text of a line of a hunk: one byte in unified
// diffs, two in diffs that put a blank after the mark.
func markLen(line string) int {
	switch {
	case strings.IndexByte("+- ", line[0]) >= 0, lex.BeginsWith(line, []string{">\n", "<\n"}):
		return 1
	case lex.BeginsWith(line, []string{"> ", "< ", "! "}):
		return 2
	}
	return 0
}

// looksLikeDiff reports whether raw has the header of a hunk, or every line of it has a mark. To
// lose the first column is harmless: no secret begins with a character that marks a line.
func looksLikeDiff(raw string) bool {
	if strings.HasPrefix(raw, "@@ -") || strings.Contains(raw, "\n@@ -") {
		return true
	}
	marked := false
	for line := range strings.Lines(raw) {
		if strings.TrimSpace(line) != "" && markLen(line) == 0 {
			return false
		}
		marked = marked || strings.TrimSpace(line) != "" && line[0] != ' '
	}
	return marked
}
