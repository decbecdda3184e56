package p4

import (
	"context"
	"strings"
)

// maxMerged limits the sources that are read of one file. More than one is rare;
// text from a source that is not read is reviewed.
const maxMerged = 3

// sourceText returns the text of a source with the line ends of after; ok is false if it is
// not available.
func (f *file) sourceText(c *content, after string) (text string, ok bool) {
	text, why := c.decode(f.charset)
	return withEndsOf(text, after), why == ""
}

// withMerged returns before with the parts of after that come from the sources: the
// diff from there to after is the author's own work. It compares texts, not
// the server's integration records: a file can be edited after it was merged.
func (f *file) withMerged(ctx context.Context, printed *printout, before, after string) (string, error) {
	for _, source := range f.merged {
		text, ok := f.sourceText(printed.of(source.spec()), after)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if source.since > 0 {
			// A merge of later revisions can bring along text of an earlier one that no review has read.
			earlier, ok := f.sourceText(printed.of(revision(source.path, source.since)), after)
			if !ok || merge(before, earlier, after) != before {
				continue
			}
		}
		before = merge(before, text, after)
	}
	return before, nil
}

// merge applies to before the edits that lead to after and come from source. Both
// lists of edits are in order, so that each is read once.
func merge(before, source, after string) string {
	a, b, from := splitLines(before), splitLines(after), splitLines(source)
	own := edits(source, after)
	var merged []string
	at := 0
	for _, e := range edits(before, after) {
		for len(own) > 0 && own[0].bEnd < e.b {
			own = own[1:]
		}
		merged = append(append(merged, a[at:e.a]...), mergedLines(e, own, a, b, from)...)
		at = e.aEnd
	}
	return strings.Join(append(merged, a[at:]...), "")
}

// mergedLines returns the lines that e, an edit from before to after, would have
// made if only source had been merged. own are the edits from source to after that
// do not end before e.
func mergedLines(e edit, own []edit, before, after, source []string) []string {
	var lines []string
	at, changed := e.b, 0
	for _, o := range own {
		if o.b > e.bEnd {
			break
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
