package redaction

import "strings"

// Values that do not stand right behind their name: the branches of
// a conditional, those of several names, what a name is compared with from
// behind, what a function returns.

// maxChoice bounds how far after a name the branches of a conditional stand.
const maxChoice = 240

// choices masks the literals in the line from at that are branches of
// a conditional or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *detector) choices(n nameRef, at int) {
	if at < d.choiceEnd {
		return // they were read with those of a name before
	}
	stop := lineEndWithin(d.s, at, maxChoice)
	asked := false
	for i := at; i < stop; {
		q := strings.IndexAny(d.s[i:stop], "\"'`;")
		if q < 0 || d.s[i+q] == ';' {
			return
		}
		lit, ok := quotedAt(d.s[:stop], i+q)
		if !ok {
			return
		}
		before := strings.TrimRight(d.s[i:i+q], " \t")
		asked = asked || strings.Contains(before, "?")
		if i > at && strings.ContainsAny(before, ",") {
			return
		}
		if branches(before, asked && i > at || strings.Contains(before, "?")) && d.isSecret(n, fallback, lit, d.s[lit.start:lit.end]) {
			d.found(classOf(n), "branch", lit.start, lit.end)
		}
		i = lit.next
		d.choiceEnd = i
	}
}

// branches reports whether a literal after the code before is a branch. asked
// is set if there was a question mark.
func branches(before string, asked bool) bool {
	for _, mark := range []string{"?", "||", " else", " or"} {
		if strings.HasSuffix(" "+before, mark) {
			return true
		}
	}
	return asked && strings.HasSuffix(before, ":")
}

// tupleAt is where the value of the name s[a:b] begins in an assignment to
// several names, as in user, password = "bob", "...". several is set if it is
// one, at is 0 if the values cannot be told apart.
func (d *detector) tupleAt(a, b int) (at int, several bool) {
	begin := lineBegin(d.s, a)
	before := strings.TrimSpace(d.s[begin:a])
	after := d.s[b:lineEndWithin(d.s, b, maxChoice)]
	eq := strings.IndexByte(after, '=')
	if eq <= 0 || eq+1 >= len(after) || after[eq+1] == '=' {
		return 0, false
	}
	left := before + " " + strings.TrimSuffix(after[:eq], ":")
	for _, word := range []string{"var ", "let ", "const ", "local ", "my ("} {
		left = strings.TrimPrefix(left, word)
	}
	if strings.Trim(left, digits+letters+"_.$, )") != "" || !strings.Contains(left, ",") {
		return 0, false
	}
	next := gap(d.s, b+eq+1)
	for i := range strings.Count(left, ",") + 1 {
		if i == strings.Count(before, ",") {
			at = next
		}
		next, _, _ = d.argument(next)
		if i < strings.Count(left, ",") {
			if next >= len(d.s) || d.s[next] != ',' {
				return 0, true
			}
			next = gap(d.s, next+1)
		}
	}
	return at, true
}

// before masks the literal that the name s[a:b] is compared with from behind,
// as in "..." == password, "...".equals(password), assertEquals("...", password).
func (d *detector) before(n nameRef, a int) {
	for a > 0 && (d.s[a-1] == '$' || d.s[a-1] == '@') {
		a--
	}
	i := runBack(d.s, a, &blankSet, 4)
	if i < 3 {
		return
	}
	from := max(0, i-maxName)
	head := d.s[from:i]
	for _, op := range comparers {
		rest, ok := strings.CutSuffix(head, op)
		if !ok {
			continue
		}
		rest = strings.TrimRight(rest, " ")
		if rest == "" || !quoteSet.has(last(rest)) {
			return
		}
		open := strings.LastIndexByte(rest[:len(rest)-1], last(rest))
		if open < 0 || op == "," && !asserts(rest[:open]) {
			return
		}
		lit := literal{from + open + 1, from + len(rest) - 1, true, from + len(rest)}
		if d.isSecret(n, compared, lit, d.s[lit.start:lit.end]) {
			d.found(classOf(n), "comparison", lit.start, lit.end)
		}
		return
	}
}

// headerField masks the value of the header n that the code before it sets:
// addValue("...", forHTTPHeaderField: "name").
func (d *detector) headerField(n nameRef, before string) {
	rest, ok := strings.CutSuffix(before, "forHTTPHeaderField:")
	if !ok {
		return
	}
	rest = strings.TrimRight(rest, " ,")
	open := strings.LastIndexByte(strings.TrimSuffix(rest, `"`), '"')
	if open < 0 || last(rest) != '"' {
		return
	}
	begin := max(0, n.begin-maxChoice) + open
	if lit, ok := quotedAt(d.s, begin); ok && d.isSecret(n, assigned, lit, d.s[lit.start:lit.end]) {
		d.found(classOf(n), "value of a header", lit.start, lit.end)
	}
}

// settingBefore masks the value of the setting n that a statement of SQL whose
// condition ends at i gives it: SET value = '...' WHERE name = 'n'.
func (d *detector) settingBefore(n nameRef, i int) {
	line := strings.ToLower(d.s[max(lineBegin(d.s, i), i-maxChoice):i])
	set := strings.Index(line, "value")
	if where := strings.LastIndex(line, " where "); set < 0 || where < set || !strings.HasPrefix(strings.TrimLeft(line[set+len("value"):], " "), "=") {
		return
	}
	at := gap(d.s, i-len(line)+set+strings.IndexByte(line[set:], '=')+1)
	if lit, ok := d.literalAt(at, listed); ok && lit.end < i && d.isSecret(n, assigned, lit, d.s[lit.start:lit.end]) {
		d.found(classOf(n), "value of a setting", lit.start, lit.end)
	}
}

var settingGap = setOf(" =")

// comparers stand between a literal and the name it is compared with.
var comparers = []string{"===", "!==", "==", "!=", ".equals(", ".equalsIgnoreCase(", ".eql?(", " eq", " ne", ","}

// asserts reports whether code ends in the call of a function that compares.
func asserts(code string) bool {
	name, ok := strings.CutSuffix(code, "(")
	if !ok {
		return false
	}
	name = strings.ToLower(name[runBack(name, len(name), &goIdent, maxName):])
	return strings.HasSuffix(name, "equals") || strings.HasSuffix(name, "equal") || strings.HasSuffix(name, "eq") || lists["compare"][name]
}

// returned is where the literal begins that the function or property s[a:b]
// returns, or the branch of a switch.
func (d *detector) returned(b int) (at int, ok bool) {
	s := d.s
	i := b
	if i < len(s) && s[i] == '(' {
		end := strings.IndexByte(s[i:min(len(s), i+maxGap)], ')')
		if end < 0 {
			return 0, false
		}
		i += end + 1
	}
	window := s[i:min(len(s), i+maxGap)]
	q := strings.IndexAny(window, "\"'`")
	if q < 0 {
		return 0, false
	}
	head := strings.TrimRight(window[:q], " ")
	for _, mark := range []string{"{ get; set; } =", "{ get; } =", "get() =", "by lazy {", "<const> ="} {
		if strings.HasSuffix(head, mark) {
			return i + q, true
		}
	}
	if strings.ContainsAny(head, ";()#/\x01=") || !strings.HasSuffix(head, "return") || strings.Count(head, "\n") > 1 {
		return 0, false
	}
	return i + q, true
}

// methodAfter reads a call at i on what a name selects: one that sets it, as in
// find("password").fill("..."), or one that compares with it.
func (d *detector) methodAfter(i int) (link, int) {
	for range maxWords {
		end := run(d.s, i+1, &goIdent, maxName)
		if word := d.s[i+1 : end]; end >= len(d.s) || d.s[end] != '.' || word != "to" && word != "should" && word != "not" && word != "is" {
			break
		}
		i = end
	}
	end := run(d.s, i+1, &goIdent, maxName)
	name := strings.ToLower(d.s[i+1 : end])
	next := gap(d.s, end)
	switch {
	case next >= len(d.s):
	case lists["orelse"][name] && d.s[end] == '(':
		return fallback, gap(d.s, end+1)
	case lists["setter"][name] && d.s[end] == '(':
		return assigned, gap(d.s, end+1)
	case lists["compare"][name] && d.s[end] == '(':
		return compared, gap(d.s, end+1)
	case name == "value" && d.s[next] == '=' && !strings.HasPrefix(d.s[next:], "=="):
		return assigned, gap(d.s, next+1)
	}
	return unlinked, 0
}

// maxWords is how many words that say nothing may stand before a method.
const maxWords = 3

// calleeBefore is the name of the function whose first argument begins at a.
func calleeBefore(s string, a int) string {
	for a > 0 && (s[a-1] == '&' || s[a-1] == '*' || s[a-1] == '$') {
		a--
	}
	if a == 0 || s[a-1] != '(' {
		return ""
	}
	return strings.ToLower(s[runBack(s, a-1, &goIdent, maxName) : a-1])
}
