package read

import (
	"encoding/csv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
)

// readCSV reads rows with a head, separated by commas, semicolons, tabs or bars. Blank lines, lines
// with # and rows with more or fewer cells do not end the table. Lines of one cell are left to the tokens.
func readCSV(text string) (doc document) {
	from := 0
	for from < len(text) && (text[from] == '\n' || text[from] == '\r' || text[from] == '#' && !strings.ContainsAny(firstLine(text[from:]), ",;\t|")) {
		from += len(firstLine(text[from:]))
	}
	first := firstLine(text[from:])
	separator, most := ',', 0
	for _, c := range ",;\t|" {
		if n := strings.Count(first, string(c)); n > most {
			separator, most = c, n
		}
	}
	if most == 0 {
		return doc
	}
	r := csv.NewReader(strings.NewReader(text[from:]))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = separator, -1, true, true
	lines := lineOffsets(text, from)
	var head []string
	root := &Step{}
	for {
		record, err := r.Read()
		if err != nil {
			break
		}
		if head == nil {
			for _, name := range record {
				head = append(head, strings.Trim(name, " \ufeff#\"'`"))
			}
			continue
		}
		if len(record) == 1 {
			continue // a comment, or a line of text
		}
		row := &Step{Up: root}
		for i, cell := range record[:min(len(record), len(head))] {
			line, column := r.FieldPos(i)
			if line > len(lines) {
				return document{}
			}
			start, end, quoted, ok := csvCell(text, lines[line-1]+column-1, cell)
			if !ok {
				return document{}
			}
			doc.add(&Step{Name: head[i], Up: row}, start, end, quoted, judge.Cell)
		}
	}
	return doc
}

// csvCell returns the text of a cell that begins at at.
func csvCell(text string, at int, cell string) (start, end int, quoted, ok bool) {
	if at > len(text) {
		return 0, 0, false, false
	}
	if at == len(text) || text[at] != '"' {
		start = at + len(text[at:]) - len(strings.TrimLeft(text[at:min(len(text), at+len(cell))], " \t")) - len(text[min(len(text), at+len(cell)):])
		end = at + len(strings.TrimRight(cell, " \t"))
		return start, max(start, end), false, strings.HasPrefix(text[at:], cell)
	}
	end = at + 1
	for want := strings.ReplaceAll(cell, "\r\n", "\n"); want != ""; {
		switch {
		case strings.HasPrefix(text[end:], `""`) && want[0] == '"':
			end += 2
		case end < len(text) && text[end] == want[0]:
			end++
		case strings.HasPrefix(text[end:], "\r\n") && want[0] == '\n':
			end += 2
		default:
			return 0, 0, false, false
		}
		want = want[1:]
	}
	return at + 1, end, true, true
}

// firstLine returns the first line of text with its end.
func firstLine(text string) string {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// lineOffsets returns where the lines begin, from the one at from on.
func lineOffsets(text string, from int) []int {
	lines := []int{from}
	for i := from; i < len(text); i++ {
		if text[i] == '\n' {
			lines = append(lines, i+1)
		}
	}
	return lines
}
