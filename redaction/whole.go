package redaction

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// A hunk does not show that a value in it is a secret if what says so, such as the head
// of a table, is far above. So the whole text of a file is read, on both sides. What
// it reveals is masked in the hunks, and as a known value in the whole change.

// scanWhole masks in pt, the diff of the file, what the file's whole text reveals.
// Secrets outside of the hunks become known values. No text is kept.
func (p *Pipeline) scanWhole(pl *payload, pt *part, file review.File) error {
	text, err := file.Whole.Text()
	if err != nil {
		return err
	}
	before, after, err := wholeSides(pt.raw, strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return err
	}
	c := collector{raw: pt.raw}
	for _, side := range []wholeSide{after, before} {
		spans := p.engine.scan(side.text, formText)
		for i := range spans {
			spans[i].value = strings.Clone(spans[i].value) // a part of the text would keep all of it
		}
		pl.known.add(spans, isSpecific)
		c.spans = append(c.spans, side.inDiff(spans)...)
	}
	pt.spans = withoutPlaceholders(pt.raw, c.finish())
	return nil
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

// wholeSides returns both sides of a diff that leads to the text after. If the diff
// removes nothing, the old side has nothing that the new one lacks, and is empty.
func wholeSides(diff, text string) (before, after wholeSide, err error) {
	var old strings.Builder
	removes := false
	headings := map[string]int{} // where each heading was last, -1 if not yet
	for at := 0; at < len(diff); at = lineEnd(diff, at) {
		if m := hunkHeader.FindStringSubmatch(diff[at:lineEnd(diff, at)]); m != nil && m[3] != "" {
			headings[m[3]] = -1
		}
	}
	after.text = text
	next, line := 0, 1 // the offset and number of the next line of text
	pass := func() {
		end := lineEnd(text, next)
		if len(headings) > 0 {
			trimmed := strings.TrimSpace(text[next:end])
			if _, ok := headings[trimmed]; ok {
				headings[trimmed] = next + strings.Index(text[next:end], trimmed)
			}
		}
		next, line = end, line+1
	}
	for at, end := 0, 0; at < len(diff); at = end {
		end = lineEnd(diff, at)
		content := diff[at+1 : end]
		if strings.HasPrefix(diff[end:], `\ `) {
			content = strings.TrimSuffix(content, "\n")
		}
		switch diff[at] {
		case '@':
			m := hunkHeader.FindStringSubmatch(diff[at:end])
			if m == nil {
				return before, after, errors.New("a hunk has an unknown header")
			}
			start, _ := strconv.Atoi(m[1])
			if m[2] == "0" {
				start++ // a hunk without new lines stands after the line
			}
			for line < start && next < len(text) {
				begin := next
				pass()
				old.WriteString(text[begin:next])
			}
			if from, ok := headings[m[3]]; ok && from >= 0 {
				after.shown = append(after.shown, shown{from, from + len(m[3]), end - 1 - len(m[3])})
			}
		case ' ', '+':
			if text[next:lineEnd(text, next)] != content {
				return before, after, fmt.Errorf("line %d of the text is not that of the diff", line)
			}
			after.shown = append(after.shown, shown{next, next + len(content), at + 1})
			pass()
			if diff[at] == '+' {
				break
			}
			fallthrough
		case '-':
			removes = removes || diff[at] == '-'
			before.shown = append(before.shown, shown{old.Len(), old.Len() + len(content), at + 1})
			old.WriteString(content)
		}
	}
	old.WriteString(text[next:])
	if before.text = old.String(); !removes {
		before = wholeSide{}
	}
	return before, after, nil
}
