package redaction

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

// A hunk does not show that a value in it is a secret if the text that shows it, such as
// the head of a table, is far above. Therefore the whole text of a file is read, on both
// sides. Secrets that it reveals are masked in the hunks, and as a known value in the
// whole change.

// scanWhole masks in pt, the diff of the file, what the file's whole text reveals.
// Secrets outside of the hunks become known values. It returns the new side.
func (p *Pipeline) scanWhole(pl *payload, pt *part, file review.File) (scanned, error) {
	text, err := file.Whole.Text()
	if err != nil {
		return scanned{}, err
	}
	before, after, err := wholeSides(pt.raw, strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return scanned{}, err
	}
	c, hidden := collector{raw: pt.raw}, collector{raw: pt.raw}
	var whole scanned
	for _, side := range []wholeSide{after, before} {
		read := p.scanAll(pl, side.text, file.DepotPath)
		c.spans = append(c.spans, side.inDiff(read.spans)...)
		hidden.spans = append(hidden.spans, side.inDiff(read.hidden)...)
		pt.literals = append(pt.literals, side.inDiff(literalsOf(side.text, lex.Of(file.DepotPath)))...)
		if side.text == after.text {
			whole = read
		}
	}
	pt.spans = p.engine.names.withoutPlaceholders(pt.raw, c.finish())
	pt.sortLiterals()
	pt.hidden, pt.whole = hidden.finish(), true
	return whole, nil
}

// scanAll reads a whole text. Its secrets become known values.
func (p *Pipeline) scanAll(pl *payload, text, file string) scanned {
	read := p.engine.scan(text, formText, file, false)
	for i := range read.spans {
		read.spans[i].value = strings.Clone(read.spans[i].value) // a part of the text would keep all of it
	}
	pl.known.add(read.spans, isSpecific)
	return read
}

// A wholeSide is the text of one side of a diff.
type wholeSide struct {
	text string
	// shown are the ranges that the diff shows.
	shown []shown
}

// A shown range is text[from:to], which is diff[at:at+to-from].
type shown struct{ from, to, at int }

// inDiff moves spans of the text to the diff, and leaves out those that it does not show.
func (s wholeSide) inDiff(spans []span) []span {
	var out []span
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

// hunkHeader matches the header of a hunk: the first new line, their number, the heading.
var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@ ?(.*)\n$`)

// wholeSides returns both sides of a diff that leads to the text. If the diff removes
// nothing, the old side has nothing that the new one lacks, and is empty.
func wholeSides(diff, text string) (before, after wholeSide, err error) {
	r := sideReader{text: text, line: 1}
	removes := false
	for at, end := 0, 0; at < len(diff) && err == nil; at = end {
		end = lex.LineEnd(diff, at)
		content := diff[at+1 : end]
		if strings.HasPrefix(diff[end:], `\ `) {
			content = strings.TrimSuffix(content, "\n")
		}
		switch diff[at] {
		case '@':
			err = r.hunk(diff[at:end], end)
		case '+':
			err = r.added(content, at+1)
		case ' ':
			err = r.added(content, at+1)
			r.removed(content, at+1)
		case '-':
			removes = true
			r.removed(content, at+1)
		}
	}
	if r.old.WriteString(text[r.next:]); removes {
		before = wholeSide{r.old.String(), r.before}
	}
	return before, wholeSide{text, r.after}, err
}

// A sideReader reads a diff beside the text of its new side, and writes the old one.
type sideReader struct {
	text          string
	next, line    int // offset and number of the next line of text
	old           strings.Builder
	before, after []shown
}

// hunk reads the lines above a hunk, whose header ends at end in the diff.
func (r *sideReader) hunk(header string, end int) error {
	m := hunkHeader.FindStringSubmatch(header)
	if m == nil {
		return errors.New("a hunk has an unknown header")
	}
	start, err := strconv.Atoi(m[1])
	if m[2] == "0" {
		start++ // a hunk without new lines stands after the line
	}
	for r.line < start && r.next < len(r.text) {
		r.old.WriteString(r.pass())
	}
	const far = 8 << 10 // a heading is one of the lines above
	from := max(0, r.next-far)
	if i := strings.LastIndex(r.text[from:r.next], m[3]); i >= 0 {
		r.after = append(r.after, shown{from + i, from + i + len(m[3]), end - 1 - len(m[3])})
	}
	return err
}

// pass reads a line of text.
func (r *sideReader) pass() string {
	line := r.text[r.next:lex.LineEnd(r.text, r.next)]
	r.next, r.line = r.next+len(line), r.line+1
	return line
}

// added reads a line of the new side, which is at at in the diff.
func (r *sideReader) added(content string, at int) error {
	r.after = append(r.after, shown{r.next, r.next + len(content), at})
	if r.pass() != content {
		return fmt.Errorf("line %d of the text is not that of the diff", r.line-1)
	}
	return nil
}

// removed reads a line of the old side, which is at at in the diff.
func (r *sideReader) removed(content string, at int) {
	r.before = append(r.before, shown{r.old.Len(), r.old.Len() + len(content), at})
	r.old.WriteString(content)
}
