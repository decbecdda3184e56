package redaction

import "strings"

// This file masks columns of tables: rows of values below the names of columns.

const separators = ",;\t|"

// table masks the columns of a table if its head, the line of the name s[a:b],
// says that they hold secrets. A head has nothing but names.
func (d *detector) table(a, b int) {
	if a < d.tableEnd || d.contextFree {
		return
	}
	sep, ok := columnMark(d.s, a, b)
	if !ok {
		return
	}
	end := lineEndWithin(d.s, b, maxHeader)
	d.tableEnd = end
	begin, stop := row(d.s, lineBegin(d.s, a), end, sep)
	columns, hasSecret := d.head(d.s[begin:stop], sep)
	if !hasSecret {
		return
	}
	for at := end; at < len(d.s); {
		next := lineEndWithin(d.s, at, maxHeader)
		if !d.tableRow(columns, sep, at, next) {
			return
		}
		at = next
		d.tableEnd = at
	}
}

// row returns the line s[at:end] without the marks around its cells.
func row(s string, at, end int, sep byte) (begin, stop int) {
	cut := "\r\n"
	if sep == '|' {
		cut = " |\r\n"
		at += len(s[at:end]) - len(strings.TrimLeft(s[at:end], " |"))
	}
	return at, max(at, at+len(strings.TrimRight(s[at:max(at, end)], cut)))
}

// columnMark returns the byte between columns, of which s[a:b] names one.
func columnMark(s string, a, b int) (byte, bool) {
	if a > 0 && quoteSet.has(s[a-1]) && b < len(s) && s[b] == s[a-1] {
		a, b = a-1, b+1
	}
	if strings.HasPrefix(s[min(b, len(s)):], " |") {
		return '|', true // a table of Markdown
	}
	if b < len(s) && strings.IndexByte(separators, s[b]) >= 0 {
		return s[b], true
	}
	if a > 0 && strings.IndexByte(separators, s[a-1]) >= 0 && (b == len(s) || s[b] == '\n' || s[b] == '\r') {
		return s[a-1], true
	}
	return 0, false
}

// head reads the names of columns. hasSecret is set if one of them names a secret.
func (d *detector) head(line string, sep byte) (columns []nameRef, hasSecret bool) {
	for name := range strings.SplitSeq(line, string(sep)) {
		name = strings.Trim(name, " \"'`\ufeff")
		if name == "" || len(name) > maxColumn || !allIn(name, &columnSet) || !letterSet.has(name[0]) {
			return nil, false
		}
		n := nameRef{ident: strings.ReplaceAll(name, " ", "_")}
		known := d.rate(n.ident)
		n.strength, n.rule = known.strength, known.rule
		hasSecret = hasSecret || n.strength >= mediumName
		columns = append(columns, n)
	}
	return columns, hasSecret && len(columns) > 1
}

// tableRow masks the secrets of s[at:end], and reports whether it is a row.
func (d *detector) tableRow(columns []nameRef, sep byte, at, end int) bool {
	at, end = row(d.s, at, end, sep)
	cells := make([]literal, 0, len(columns))
	for begin := at; ; {
		lit := cell(d.s[:end], begin, sep)
		cells = append(cells, lit)
		if lit.next >= end || len(cells) > len(columns) {
			break
		}
		begin = lit.next + 1
	}
	if len(cells) != len(columns) {
		return false
	}
	for i, lit := range cells {
		if lit.start < lit.end && isCellSecret(columns[i], d.text(lit)) {
			d.reportValue(columns[i], "column of a table", lit.start, lit.end)
		}
	}
	return true
}

// cell reads the cell that begins at at.
func cell(s string, at int, sep byte) literal {
	if at < len(s) && s[at] == '"' {
		if i := strings.IndexByte(s[at+1:], '"'); i >= 0 {
			end := at + 1 + i
			if end+1 == len(s) || s[end+1] == sep {
				return literal{at + 1, end, true, end + 1}
			}
		}
	}
	end := len(s)
	if i := strings.IndexByte(s[at:], sep); i >= 0 {
		end = at + i
	}
	return trimLiteral(s, literal{at, end, false, end})
}

// isCellSecret reports whether text in the column n is a secret.
func isCellSecret(n nameRef, text string) bool {
	switch {
	case n.strength < mediumName, len(text) < 3, isPlaceholder(text), isReference(text), strings.HasPrefix(text, "-"),
		isFloat(text), isSource(text), isPath(text), isProse(text):
		return false
	case n.strength == mediumName:
		return isLikelyKey(text)
	}
	return !isCommonWords(text, 0) && isCommunity(text)
}

// insert masks the values of an SQL statement, whose table begins at at:
// INSERT INTO users (name, password) VALUES ('bob', '...'), ('eve', '...').
func (d *detector) insert(_, _, at int) {
	if at < d.insertEnd {
		return
	}
	table, rest, ok := strings.Cut(d.s[at:min(len(d.s), at+maxColumns)], "(")
	list, _, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return
	}
	columns := d.columns(list)
	at = run(d.s, at+len(table)+len(list)+len("()"), &spaceSet, maxGap)
	if words := d.s[at:min(len(d.s), at+len("values"))]; !strings.EqualFold(words, "values") {
		return
	}
	at = run(d.s, at+len("values"), &spaceSet, maxGap)
	for at < len(d.s) && d.s[at] == '(' {
		at = d.insertedRow(columns, at+1)
		if at < len(d.s) && d.s[at] == ',' {
			at = run(d.s, at+1, &spaceSet, maxGap)
		}
	}
	d.insertEnd = at
}

// columns returns the names of columns and their strengths.
func (d *detector) columns(list string) []nameRef {
	var out []nameRef
	for name := range strings.SplitSeq(list, ",") {
		name = strings.Trim(name, " \t\r\n\"'`[]")
		n := nameRef{ident: name}
		if isIdentifier(name) {
			known := d.rate(name)
			n.strength, n.rule = known.strength, known.rule
		}
		out = append(out, n)
	}
	return out
}

// insertedRow masks the secrets of the row whose first value is at at, and
// returns where the text after the row begins.
func (d *detector) insertedRow(columns []nameRef, at int) int {
	for i := 0; ; i++ {
		next, lit, ok := d.argument(run(d.s, at, &spaceSet, maxGap))
		if ok && i < len(columns) && columns[i].strength != noName && d.isSecret(columns[i], paired, lit, d.text(lit)) {
			d.reportValue(columns[i], "column of a row", lit.start, lit.end)
		}
		switch {
		case next < len(d.s) && d.s[next] == ',':
			at = next + 1
		case next < len(d.s) && d.s[next] == ')':
			return run(d.s, next+1, &spaceSet, maxGap)
		default:
			return next
		}
	}
}
