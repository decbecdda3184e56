package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// table masks the columns of a table that hold secrets by its head, the line of the name
// n: CSV, with any separator, or Markdown. A head consists of names only. Blank lines,
// comments and rows with too many or too few cells do not end a table.
func table(d *reader, rg *region, n judge.Name) {
	for rg.outer != nil {
		rg = rg.outer
	}
	if n.Begin < d.tableEnd || rg.code {
		return
	}
	begin := max(rg.from, strings.LastIndexAny(d.s[:n.Begin], "\n\x01")+1)
	end := min(rg.to, lex.LineEnd(d.s, n.End))
	d.tableEnd = end
	mark := strings.IndexAny(d.s[begin:end], ",;\t|")
	if mark < 0 {
		return
	}
	sep := d.s[begin+mark]
	head, at := d.row(begin, end, sep)
	columns := make([]judge.Name, 0, len(head))
	named := 0
	for _, lit := range head {
		name := strings.Trim(d.s[lit.start:lit.end], " \"'`\ufeff")
		if isColumn(name) {
			named++
		} else if name != "" {
			return
		}
		columns = append(columns, d.cache.Of(d.Names, identifier.Replace(name)))
	}
	if named < 2 || !slices.ContainsFunc(columns, func(n judge.Name) bool { return n.Strength >= judge.Medium }) {
		return
	}
	for rows := 0; at < rg.to && d.s[at] != 1; {
		line := strings.TrimSpace(d.s[at:min(rg.to, lex.LineEnd(d.s, at))])
		row, next := d.row(at, rg.to, sep)
		switch {
		case line == "" || line[0] == '#' || strings.HasPrefix(line, "//"):
			at = lex.LineEnd(d.s, at)
			continue
		case d.lang.Name != "csv" && (len(row) < 2 || rows == 0 && len(row) != len(columns)):
			return
		}
		for i, lit := range row {
			if i < len(columns) && columns[i].Strength >= judge.Medium {
				d.secret(columns[i], "column of a table", judge.Cell, lit, "")
			}
		}
		at, rows = next, rows+1
		d.tableEnd = at
	}
}

// isColumn reports whether text may be the name of a column, such as "Name (full)".
func isColumn(text string) bool {
	const most = 64
	plain := strings.TrimRight(strings.NewReplacer(" (", " ", ") ", " ").Replace(text+" "), " ")
	return text != "" && len(text) <= most && lex.LetterSet.Has(text[0]) && strings.Trim(plain, lex.Digits+lex.Letters+"_-. ") == ""
}

// row reads the cells at at, up to the line end or end, and returns where the next row begins. A cell
// in quotes may have several lines.
func (d *reader) row(at, end int, sep byte) (cells []literal, next int) {
	if sep == '|' {
		at = lex.Run(d.s, at, &cellMargin, end-at)
	}
	for at <= end {
		lit := literal{start: at, end: at}
		begin := at
		if at < end && d.s[at] == '"' {
			i := at + 1
			for i < end && (d.s[i] != '"' || lex.ByteAt(d.s[:end], i+1) == '"') {
				if d.s[i] == '"' || d.s[i] == '\\' {
					i++
				}
				i++
			}
			if i < end && i-at < 64<<10 {
				lit, at = literal{start: at + 1, end: i, quoted: true}, i+1
			}
		}
		stop := at
		for stop < end && d.s[stop] != sep && d.s[stop] != '\n' && d.s[stop] != 1 {
			stop++
		}
		if !lit.quoted {
			lit = trim(d.s, literal{start: begin, end: stop})
		}
		last := stop >= end || d.s[stop] != sep
		if !(last && sep == '|' && lit.start >= lit.end) { // a | at the end
			cells = append(cells, lit)
		}
		if last {
			return cells, min(end, stop+1)
		}
		at = stop + 1
	}
	return cells, end
}

var cellMargin = lex.SetOf(" |")

// insert masks the values of an SQL statement, behind its first words:
// INSERT INTO users (name, password) VALUES ('bob', '...'), ('eve', '...').
func insert(d *reader, rg *region, h lex.Hit) {
	if h.Begin < d.insertEnd {
		return
	}
	columns, c := columns(d, rg.cursorAt(h.End))
	const most = 64 // tokens between the columns and the values
	word := ""
	for k := 0; len(columns) > 0 && k < most && word != "values" && word != "value" && word != "select" && word != "stdin"; k++ {
		c = c.skip(true)
		if word = strings.ToLower(c.text()); word == "" || word == ";" {
			return
		}
		c = c.next()
	}
	cell := func(i int, lit literal, ok bool) bool {
		if ok && i < len(columns) && columns[i].Strength != judge.NoName {
			d.secret(columns[i], "column of a row", judge.Paired, lit, "")
		}
		return true
	}
	switch word {
	case "select":
		d.arguments(c, cell)
	case "stdin": // COPY users (name, password) FROM stdin; and rows up to \.
		for at := lex.LineEnd(d.s[:rg.to], c.offset()); at < rg.to && d.s[at] != 1 && !strings.HasPrefix(d.s[at:], `\.`); {
			row, next := d.row(at, rg.to, '\t')
			for i, lit := range row {
				cell(i, lit, true)
			}
			at = next
			d.work++
			d.insertEnd = at
		}
	case "values", "value":
		for c = c.skip(true); c.is("("); c = c.skip(true) {
			if c = d.arguments(c.next(), cell); c.is(")") {
				c = c.next().skip(true)
			}
			if c.is(",") {
				c = c.next()
			}
			d.insertEnd = c.offset()
		}
	}
}

// columns reads the table and the columns of a statement: users (name, password).
func columns(d *reader, c cursor) (columns []judge.Name, next cursor) {
	const most = 16 // tokens of the name of the table
	for k := 0; !c.is("("); k++ {
		if c.text() == "" || k == most {
			return nil, c
		}
		c = c.next()
	}
	name := ""
	for c = c.next(); ; c = c.next() {
		t, _ := c.token()
		switch text := c.text(); {
		case text == "", text == "(":
			return nil, c
		case text == ",", text == ")":
			columns = append(columns, d.cache.Of(d.Names, name))
			if name = ""; text == ")" {
				return columns, c.next()
			}
		case t.Kind == lex.Name, t.Kind == lex.Literal:
			name = strings.Trim(name+"_"+strings.ReplaceAll(d.s[t.Inner():t.InnerEnd()], " ", "_"), "_")
		}
	}
}
