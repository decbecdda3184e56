package read

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// container masks the secrets of the list, map or bytes in brackets at c. It reports whether
// all of the value is read.
func (d *reader) container(n judge.Name, place string, c cursor, onlyBytes bool) bool {
	open, ok := d.opening(c)
	if !ok {
		return false
	}
	if value, ok := d.behindType(open); ok {
		return d.container(n, place, value, onlyBytes)
	}
	at := d.offset(open)
	if at < d.listEnd && n.Strength <= d.listStrength {
		return true
	}
	first, _ := open.next().skip(true).token()
	isMap := d.isOperator(open.next().skip(true).next().skip(true))
	if d.is(open, "{") && d.arrow(c) && !isMap {
		return false // the body of a function
	}
	d.listStrength = n.Strength
	d.members(n, place, open, onlyBytes)
	return !d.is(open, "(") && (first.Kind != lex.Literal || isMap) && open == c
}

// behindType returns the value behind a type in brackets, as in key: [u8; 4] = [1, 2, 3, 4].
func (d *reader) behindType(c cursor) (cursor, bool) {
	const most = 8 // tokens of a type
	for range most {
		if c = c.next(); d.is(c, "]") {
			c = c.next().skip(false)
			return c.next().skip(true), d.is(c, "=")
		}
	}
	return c, false
}

// arrow reports whether the operator before c is =>.
func (d *reader) arrow(c cursor) bool {
	t, ok := c.back().before()
	return ok && d.text(t) == "=>"
}

// opening returns the bracket that begins the list, map or bytes at c, behind its type:
// [, []string{, map[string]string{, new byte[] {, byteArrayOf(.
func (d *reader) opening(c cursor) (cursor, bool) {
	const most = 24 // tokens of a type
	at, word := c, ""
	for k := range most {
		t, ok := at.token()
		if !ok || t.Kind == lex.Literal || t.Kind == lex.Newline || t.Kind == lex.Comment {
			return at, false
		}
		text := d.text(t)
		switch {
		case text == "{", text == "[" && k == 0 && !d.is(at.next(), "]"), text == "(" && k == 0:
			return at, k == 0 || c.rg.code || c.rg.outer == nil
		case text == "[" && !d.is(at.next(), "]") && word != "" && (judge.Words("bytes")[word] || word == "vec"):
			return at, true
		case text == "(":
			return at, judge.Words("bytes")[word] || judge.Words("collection")[strings.ToLower(word)]
		case t.Kind == lex.Name:
			word = text
		case t.Kind != lex.Blank && strings.Trim(text, "[].*<>,&:!@") != "":
			return at, false
		}
		at = at.next()
	}
	return at, false
}

// isOperator reports whether the token at c is what stands between a member and its value.
func (d *reader) isOperator(c cursor) bool {
	t, ok := c.token()
	if !ok || t.Kind != lex.Mark {
		return false
	}
	switch d.text(t) {
	case ":", "=>", "=", "->", ":=":
		return true
	}
	return false
}

// members masks the secrets in the brackets that open opens. If they do not close, the rest of
// the text is read as part of them.
func (d *reader) members(n judge.Name, place string, open cursor, onlyBytes bool) {
	depth, key, valued, numbers, others := 0, "", false, 0, 0
	from, to := 0, 0 // of the numbers
	c := open
	for {
		d.work++
		t, ok := c.token()
		if !ok {
			if c.rg.outer == nil && !onlyBytes && c.i >= len(c.rg.toks) && (depth > 0 || numbers > 0) {
				d.Open = append(d.Open, judge.Span{Start: n.Begin, End: len(d.s), Reason: judge.Reason{Rule: n.Rule}, Hidden: "secrets without an end"})
			}
			break
		}
		text := d.text(t)
		next := c.next()
		switch t.Kind {
		case lex.Mark:
			switch text {
			case "{", "[", "(":
				depth++
				valued, key = false, ""
			case "}", "]", ")":
				if depth--; depth <= 0 {
					d.listEnd = int(t.End)
					d.bytes(n, place, from, to, numbers, others)
					return
				}
			case ":", "=>", "=", "->", ":=":
				valued = true
			case ",":
				valued, key = false, ""
			}
		case lex.Name, lex.Literal:
			if isByte(text) && t.Kind == lex.Name {
				if numbers == 0 {
					from = int(t.Start)
				}
				numbers += 1 + max(0, len(text)-4)/2
				to = int(t.End)
			} else if t.Kind == lex.Name && !judge.Words("betweenbytes")[text] && text != "u8" {
				others++
			}
			if !valued && d.isOperator(next.skip(false)) {
				key = strings.TrimSpace(d.s[t.Inner:t.InnerEnd])
				break
			}
			bind := judge.Item
			if valued {
				bind = judge.Member
			}
			lit := literal{int(t.Inner), int(t.InnerEnd), t.Kind == lex.Literal, next}
			if t.Kind == lex.Name {
				if !c.rg.bare || c.rg.code || !valued && d.is(open, "{") {
					break
				}
				if lit, ok = d.bareAt(c, bind); !ok {
					break
				}
				next = lit.next
			}
			if !onlyBytes && (len(key) == 0 || d.cache.Of(d.Names, key).Strength < judge.Medium) {
				d.secret(n, place, bind, lit, key)
			}
			valued = false
		}
		c = next
	}
	d.bytes(n, place, from, to, numbers, others)
	d.listEnd = d.offset(c)
}

// isByte reports whether text is a number, such as a byte of a key.
func isByte(text string) bool {
	return len(text) <= 18 && (lex.IsDigit(text[0]) || len(text) == 2 && lex.AllIn(text, &lex.HexSet))
}

// bytes masks the numbers s[from:to] of a list of bytes.
func (d *reader) bytes(n judge.Name, place string, from, to, numbers, others int) {
	const least = 10
	if numbers >= least && others == 0 && !strings.HasSuffix(strings.ToLower(n.Ident), "tokens") {
		d.report(n, place, from, to)
	}
}

// block masks the secrets in the lines at c that are indented deeper than the line of the name, as in
// YAML: members, and items behind a dash. It reports whether there are such lines.
func (d *reader) block(n judge.Name, place string, c cursor) (found bool) {
	base := d.indent(n.Begin)
	from := lex.LineBegin(d.s, n.Begin)
	base = lex.Run(d.s, from, &lex.BlankSet, base) - from
	at := lex.LineBegin(d.s, d.offset(c))
	if operator, _ := c.back().before(); d.text(operator) == "=" {
		return false
	}
	if at < d.listEnd && n.Strength <= d.listStrength {
		return true
	}
	nested := strings.HasPrefix(strings.TrimLeft(d.s[from:n.Begin], " "), "- ") // the name is in an item itself
	for end := 0; at < c.rg.to; at = end {
		end = min(c.rg.to, lex.LineEnd(d.s, at))
		begin := lex.Run(d.s[:end], at, &lex.BlankSet, end-at)
		line := strings.TrimRight(d.s[begin:end], " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		item := strings.HasPrefix(line, "- ")
		if line[0] == 1 || begin-at < base || begin-at == base && (!item || nested) {
			break
		}
		for strings.HasPrefix(line, "- ") {
			cut := strings.TrimLeft(line[2:], " ")
			begin += len(line) - len(cut)
			line = cut
		}
		key, lit := d.member(begin, line)
		if key == "" && !item {
			break
		}
		found, d.listStrength = true, n.Strength
		d.listEnd = end
		bind := judge.Item
		if key != "" {
			bind = judge.Member
		}
		if lit.start < lit.end && (key == "" || d.cache.Of(d.Names, key).Strength < judge.Medium) {
			lit.next = c.rg.cursorAt(lit.end)
			d.secret(n, place, bind, lit, key)
		}
	}
	return found
}

// member reads the line s[begin:begin+len(line)]: a member and its value, or an item.
func (d *reader) member(begin int, line string) (key string, lit literal) {
	i := 0
	if q := line[0]; q == '"' || q == '\'' {
		i = strings.IndexByte(line[1:], q) + 2
	}
	value := 0
	if i != 1 {
		if k := strings.Index(line[i:]+" ", ": "); k >= 0 && !strings.ContainsAny(line[:i+k], " =(") {
			key, value = strings.Trim(line[:i+k], `"'`), min(len(line), i+k+1)
		}
	}
	text := strings.TrimLeft(line[value:], " ")
	value = len(line) - len(text)
	for len(text) > 1 && (text[0] == '&' || text[0] == '!') && strings.Contains(text, " ") { // an anchor or a tag
		text = strings.TrimLeft(text[strings.IndexByte(text, ' '):], " ")
		value = len(line) - len(text)
	}
	if text == "" || text[0] == '|' || text[0] == '>' || text[0] == '{' || text[0] == '[' {
		return key, literal{}
	}
	if q := text[0]; q == '"' || q == '\'' {
		if end := strings.IndexByte(text[1:], q); end >= 0 {
			return key, literal{start: begin + value + 1, end: begin + value + 1 + end, quoted: true}
		}
	}
	if k := strings.Index(text, " #"); k >= 0 {
		text = strings.TrimRight(text[:k], " ")
	}
	return key, literal{start: begin + value, end: begin + value + len(text)}
}
