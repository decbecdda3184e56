package p4

import (
	"cmp"
	"strings"
)

// maxMerged limits the sources that are read of one file. More than one is rare;
// text from a source that is not read is reviewed.
const maxMerged = 3

// sourceText returns the text of a source; ok is false if it is not available.
func (c *content) sourceText() (text string, ok bool) {
	if c.missing != "" || cmp.Or(actionSkip(c.action), c.fileType.skip()) != "" {
		return "", false
	}
	text, ok = toText(c.data)
	return c.fileType.collapse(text), ok && isIntact(c.data, "", c.size, c.fileType)
}

// withMerged returns before with the parts of after that come from the sources: the
// diff from there to after is the author's own work. It compares texts, not
// the server's integration records: a file can be edited after it was merged.
func (f *file) withMerged(printed *printout, before, after string) string {
	for _, source := range f.merged {
		if text, ok := printed.of(source).sourceText(); ok {
			before = merge(before, text, after)
		}
	}
	return before
}

// merge applies to before the edits that lead to after and come from source.
func merge(before, source, after string) string {
	a, b, from := splitLines(before), splitLines(after), splitLines(source)
	own := edits(source, after)
	var out strings.Builder
	at := 0
	for _, e := range edits(before, after) {
		out.WriteString(strings.Join(a[at:e.a], ""))
		out.WriteString(strings.Join(mergedLines(e, own, a, b, from), ""))
		at = e.aEnd
	}
	out.WriteString(strings.Join(a[at:], ""))
	return out.String()
}

// mergedLines returns the lines that e, an edit from before to after, would have
// made if only source had been merged. own are the edits from source to after.
func mergedLines(e edit, own []edit, before, after, source []string) []string {
	var lines []string
	at, changed := e.b, 0
	for _, o := range own {
		if o.bEnd < e.b || o.b > e.bEnd {
			continue
		}
		if o.b < e.b || o.bEnd > e.bEnd {
			return before[e.a:e.aEnd] // o extends beyond e
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
