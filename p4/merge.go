package p4

import (
	"cmp"
	"strings"
)

// maxMerged bounds the sources of one file that are looked at. More than one
// is rare; what comes from a source that is not looked at is reviewed.
const maxMerged = 3

// sourceText is the text of a source; ok is false if it cannot be had.
func (c *content) sourceText() (text string, ok bool) {
	if c.missing != "" || cmp.Or(whyGone(c.action), c.fileType.skip()) != "" {
		return "", false
	}
	text, ok = toText(c.data)
	return c.fileType.collapse(text), ok && isIntact(c.data, "", c.size, c.fileType)
}

// withMerged returns what an integration made of before without anybody's
// edits: before with all that after has from the sources. It goes by the texts
// and not by what the server recorded of the merge, for a file can be edited
// after that was.
func (f *file) withMerged(printed *printout, before, after string) string {
	for _, source := range f.merged {
		if text, ok := printed.of(source).sourceText(); ok {
			before = merge(before, text, after)
		}
	}
	return before
}

// merge returns before with those edits that lead to after and come from
// source.
func merge(before, source, after string) string {
	a, b, from := splitLines(before), splitLines(after), splitLines(source)
	own := edits(source, after)
	var out strings.Builder
	at := 0
	for _, e := range edits(before, after) {
		out.WriteString(strings.Join(a[at:e.a], ""))
		out.WriteString(strings.Join(unedited(e, own, a, b, from), ""))
		at = e.aEnd
	}
	out.WriteString(strings.Join(a[at:], ""))
	return out.String()
}

// unedited returns the lines that e, an edit from before to after, would have
// led to if only source had been merged. own are the edits from source to after.
func unedited(e edit, own []edit, before, after, source []string) []string {
	var lines []string
	at, changed := e.b, 0
	for _, o := range own {
		if o.bEnd < e.b || o.b > e.bEnd {
			continue
		}
		if o.b < e.b || o.bEnd > e.bEnd {
			return before[e.a:e.aEnd] // it goes on beyond e
		}
		lines = append(append(lines, after[at:o.b]...), source[o.a:o.aEnd]...)
		at = o.bEnd
		changed += o.size()
	}
	if changed >= e.size() {
		return before[e.a:e.aEnd]
	}
	return append(lines, after[at:e.bEnd]...)
}

// size is the number of lines that an edit removes and adds.
func (e edit) size() int { return e.aEnd - e.a + e.bEnd - e.b }
