package redaction

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A side is a text as the detectors read it: a plain text, the lines of one side of a diff, so that a
// secret is found whole although lines of the other side are between its lines, or the whole file on
// one side of a diff.
type side struct {
	text string
	// shown are the ranges of text that the raw text has, too, and same those of an old side that the new side has.
	shown, same []shown
	// partial is set if lines of the file are missing, sections are where lines are missing in front.
	partial  bool
	sections []int
}

// A shown range is text[from:to], which is raw[at:at+to-from].
type shown struct{ from, to, at int }

// project moves sorted spans of the text to the raw text, and leaves out those that it does not show.
func (s side) project(spans []span) (out []span) {
	for _, r := range s.shown {
		first := sort.Search(len(spans), func(i int) bool { return spans[i].end > r.from })
		for _, sp := range spans[first:] {
			if sp.start >= r.to {
				break
			}
			sp.start, sp.end = max(sp.start, r.from)-r.from+r.at, min(sp.end, r.to)-r.from+r.at
			out = append(out, sp)
		}
	}
	return out
}

// A sideBuilder assembles a side.
type sideBuilder struct {
	text     strings.Builder
	shown    []shown
	sections []int
}

// show appends text, which is at at in the raw text.
func (b *sideBuilder) show(text string, at int) {
	b.shown = append(b.shown, shown{b.text.Len(), b.text.Len() + len(text), at})
	b.text.WriteString(text)
}

// section begins a section.
func (b *sideBuilder) section() {
	if b.text.Len() > 0 {
		b.text.WriteString(lex.SectionEnd)
	}
	b.sections = append(b.sections, b.text.Len())
}

// sidesOf returns the sides of a text: itself, or the new and the old side if it is a diff. The old side
// has only hunks that remove something.
func sidesOf(raw string, isDiff bool) []side {
	if !isDiff && !looksLikeDiff(raw) {
		return []side{{text: raw, shown: []shown{{0, len(raw), 0}}}}
	}
	var after, before sideBuilder
	for _, b := range []*sideBuilder{&after, &before} {
		b.text.Grow(len(raw))
		b.shown = make([]shown, 0, strings.Count(raw, "\n"))
	}
	for at, end := 0, 0; at < len(raw); at = end {
		end = lex.LineEnd(raw, at)
		header := isHeader(raw, at, end)
		isText, removes := header, false
		for begin := at; !header; {
			line := raw[begin:end] // without a mark, it shows that the lines are not a hunk, but text
			isText = isText || markLen(line) == 0 && line[0] != '\\' && strings.TrimSpace(line) != ""
			removes = removes || isRemoved(line)
			next := lex.LineEnd(raw, end)
			if end == len(raw) || isHeader(raw, end, next) {
				break
			}
			begin, end = end, next
		}
		after.section()
		if isText {
			after.show(raw[at:end], at)
			continue
		}
		if removes {
			before.section()
		}
		for next := 0; at < end; at = next {
			next = lex.LineEnd(raw, at)
			line := raw[at:next]
			mark := markLen(line)
			if !isRemoved(line) {
				after.show(line[mark:], at+mark)
			}
			if removes && line[0] != '+' && line[0] != '>' {
				before.show(line[mark:], at+mark)
			}
		}
	}
	var all sideBuilder
	for at, end := 0, 0; !isDiff && at < len(raw); at = end { // what only looks like a diff is read without its marks, too
		end = lex.LineEnd(raw, at)
		mark := markLen(raw[at:end])
		all.show(raw[at+mark:end], at+mark)
	}
	var out []side
	for _, b := range []*sideBuilder{&after, &before, &all} {
		if b.text.Len() > 0 {
			out = append(out, side{text: b.text.String(), shown: b.shown, partial: true, sections: b.sections})
		}
	}
	return out
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
	return strings.IndexByte("@d=I", raw[at]) >= 0 && lex.BeginsWith(raw[at:end], []string{"@@", "diff --git ", "==== ", "Index: "})
}

// markLen returns the length of the mark before the text of a line of a hunk: one byte in unified
// diffs, two in diffs that put a blank after the mark.
func markLen(line string) int {
	switch line[0] {
	case '+', '-', ' ':
		return 1
	case '>', '<', '!':
		if next := lex.ByteAt(line, 1); next == ' ' {
			return 2
		} else if next == '\n' && line[0] != '!' {
			return 1
		}
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

// hunkHeader matches the header of a hunk: the first new line, their number, the heading.
var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@ ?(.*)\n$`)

// wholeSides returns the whole file on both sides of a unified diff that leads to the text, the new side
// first: a hunk does not show that a value in it is a secret if the text that shows it, such as the head
// of a table, is far above. A diff that removes nothing has no old side, for the new one has all of it.
func wholeSides(diff, text string) ([]side, error) {
	var before sideBuilder
	after := side{text: text}
	next, line := 0, 1 // offset and number of the next line of text
	pass := func() string {
		begin := next
		next, line = lex.LineEnd(text, next), line+1
		return text[begin:next]
	}
	var same []shown
	keep := func(from int) { // text[from:next] is on both sides
		begin := before.text.Len()
		before.text.WriteString(text[from:next])
		same = append(same, shown{begin, before.text.Len(), from})
	}
	removes := false
	for at, end := 0, 0; at < len(diff); at = end {
		end = lex.LineEnd(diff, at)
		content := diff[at+1 : end]
		if strings.HasPrefix(diff[end:], `\ `) {
			content = strings.TrimSuffix(content, "\n")
		}
		switch mark := diff[at]; mark {
		case '@':
			m := hunkHeader.FindStringSubmatch(diff[at:end])
			if m == nil {
				return nil, errors.New("a hunk has an unknown header")
			}
			start, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, err
			}
			if m[2] == "0" {
				start++ // a hunk without new lines stands after the line
			}
			from := next
			for line < start && next < len(text) {
				pass()
			}
			keep(from)
			const far = 8 << 10 // a heading is one of the lines above
			above := max(0, next-far)
			if i := strings.LastIndex(text[above:next], m[3]); i >= 0 {
				after.shown = append(after.shown, shown{above + i, above + i + len(m[3]), end - 1 - len(m[3])})
			}
		case '+', ' ':
			after.shown = append(after.shown, shown{next, next + len(content), at + 1})
			if pass() != content {
				return nil, fmt.Errorf("line %d of the text is not that of the diff", line-1)
			}
			if mark == ' ' {
				begin := before.text.Len()
				keep(next - len(content))
				before.shown = append(before.shown, shown{begin, begin + len(content), at + 1})
			}
		case '-':
			removes = true
			before.show(content, at+1)
		}
	}
	if !removes {
		return []side{after}, nil
	}
	from := next
	next = len(text)
	keep(from)
	return []side{after, {text: before.text.String(), shown: before.shown, same: same}}, nil
}
