package redaction

import "strings"

// insert masks the values of an SQL statement whose columns name secrets:
// INSERT INTO users (name, password) VALUES ('bob', '...'), ('eve', '...'). The
// trigger ends at at.
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

// maxColumns bounds the table and the columns of a statement.
const maxColumns = 2 << 10

// columns returns the names of columns and their strengths.
func (d *detector) columns(list string) []nameRef {
	var out []nameRef
	for name := range strings.SplitSeq(list, ",") {
		name = strings.Trim(name, " \t\r\n\"'`[]")
		n := nameRef{ident: name}
		if isIdentifier(name) {
			n.strength = d.strengthOf(name)
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
			d.report(classOf(columns[i]), "column of a row", lit.start, lit.end)
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
