package redaction

import "strings"

// insert masks the values of an SQL statement whose columns have telling names:
// INSERT INTO users (name, password) VALUES ('bob', '...'), ('eve', '...').
// at is the offset after INSERT INTO.
func (d *detector) insert(at int) {
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
		at = d.row(columns, at+1)
		if at < len(d.s) && d.s[at] == ',' {
			at = run(d.s, at+1, &spaceSet, maxGap)
		}
	}
	d.insertEnd = at
}

// maxColumns bounds the table and the columns of a statement.
const maxColumns = 2 << 10

// columns reads the names of columns and what each promises.
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

// row masks the secrets of a row, whose first value is at at, and returns where
// what follows the row begins.
func (d *detector) row(columns []nameRef, at int) int {
	for i := 0; ; i++ {
		next, lit, ok := d.argument(run(d.s, at, &spaceSet, maxGap))
		if ok && i < len(columns) && columns[i].strength != noName && d.isSecret(columns[i], paired, lit, d.s[lit.start:lit.end]) {
			d.found(classOf(columns[i]), "column of a row", lit.start, lit.end)
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
