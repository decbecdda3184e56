package redaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A literal is a value as it is in the text.
type literal struct {
	start, end int
	quoted     bool
	// next is the offset after the literal and its closing quote.
	next int
}

// text returns the value of a literal.
func (d *detector) text(lit literal) string { return d.s[lit.start:lit.end] }

// literalAt reads a literal, in quotes or bare, also as the argument of a call.
func (d *detector) literalAt(at int, bind binding) (literal, bool) {
	s := d.s
	i := at
	for range 3 {
		i = skipLiteralPrefix(s, i)
		if i < len(s) && quoteSet.has(s[i]) {
			return quotedAt(s, i)
		}
		if open, end := openingAt(s, i, bind); open != "" {
			return delimited(s, i, open, end)
		}
		arg, ok := unwrapCall(s, i)
		if !ok {
			break
		}
		i = arg
	}
	switch bind {
	case compared, listed, called:
		return literal{}, false
	}
	if n := run(s, at, &digitSet, 6); n > at && n+1 < len(s) && s[n] == '\'' && foldByte(s[n+1]) == 'h' { // a number of a hardware language
		end := run(s, n+2, &hdlSet, maxValue)
		return literal{n + 2, end, true, end}, end > n+2
	}
	return d.bareAt(at, bind)
}

// openingAt returns the delimiters of a literal that begins at s[i]: escaped
// quotes, as in JSON within a string, quotes of HTML, CDATA, and the quoting
// operators of Perl and Ruby such as q(...) and %q{...}.
func openingAt(s string, i int, bind binding) (open, end string) {
	if q := run(s, i, &backslash, 8); q > i && q < len(s) && quoteSet.has(s[q]) {
		return s[i : q+1], s[i : q+1]
	}
	if bind == element && strings.HasPrefix(s[i:], cdata) {
		return cdata, "]]>"
	}
	for _, word := range []string{"q", "qq", "%q", "%Q", "%"} {
		if rest, ok := strings.CutPrefix(s[i:], word); ok && rest != "" {
			if j := strings.IndexByte("({[", rest[0]); j >= 0 {
				return s[i : i+len(word)+1], ")}]"[j : j+1]
			}
		}
	}
	if strings.HasPrefix(s[i:], "&quot;") {
		return "&quot;", "&quot;"
	}
	return "", ""
}

const cdata = "<![CDATA["

// delimited reads the literal between open, at i, and end, which are on one line.
func delimited(s string, i int, open, end string) (literal, bool) {
	start := i + len(open)
	n := strings.Index(s[start:min(len(s), i+maxValue)], end)
	if n < 0 || strings.IndexByte(s[start:start+n], '\n') >= 0 {
		return literal{}, false
	}
	return literal{start, start + n, true, start + n + len(end)}, true
}

// skipLiteralPrefix skips what may stand before a quote: b"x", L"x", @"x", N'x', [ "x".
func skipLiteralPrefix(s string, i int) int {
	j := i
	for j < len(s) && j-i < 3 && strings.IndexByte("bruflnxBRUFLNX@$[{(&*#", s[j]) >= 0 {
		j++
		if j < len(s) && (s[j-1] == '[' || s[j-1] == '{' || s[j-1] == '(') {
			j = run(s, j, &spaceSet, maxGap)
		}
	}
	if j < len(s) && quoteSet.has(s[j]) {
		return j
	}
	return i
}

// unwrapCall returns where the argument begins of a call that only converts it.
func unwrapCall(s string, i int) (arg int, ok bool) {
	begin := skipWord(s, i, "new ")
	end := run(s, begin, &calleeSet, maxName)
	if end >= len(s) || s[end] != '(' || end == begin {
		return 0, false
	}
	words := splitWords(s[begin:end])
	if s[begin:end] == "_T" {
		words = []string{"text"}
	}
	if len(words) == 0 {
		return 0, false
	}
	joined := strings.Join(words[max(0, len(words)-2):], "")
	if !lists["wrapper"][lastWord(words)] && !lists["wrapper"][joined] {
		return 0, false
	}
	if joined == "getbytes" {
		words = words[:len(words)-2]
	}
	if slices.ContainsFunc(words, func(w string) bool { return lists["indirect"][w] }) {
		return 0, false
	}
	return run(s, end+1, &spaceSet, maxGap), true
}

// quotedAt reads the literal whose opening quote is at i, to its closing quote
// or, if there is none on the line, to the end of the line.
func quotedAt(s string, i int) (literal, bool) {
	q := s[i]
	if strings.HasPrefix(s[i:], `"""`) || strings.HasPrefix(s[i:], "'''") || strings.HasPrefix(s[i:], "``") && !strings.HasPrefix(s[i:], "```") {
		return multiQuotedAt(s, i)
	}
	for j := i + 1; j < len(s) && j-i < maxValue; j++ {
		switch c := s[j]; {
		case c == q && j > i+1 && j+2 < len(s) && s[j+1] == q && isAlnum(s[j+2]):
			j++ // a doubled quote
		case c == q:
			return literal{i + 1, j, true, j + 1}, true
		case c == '\\' && j+1 < len(s) && s[j+1] != '\n':
			j++
		case c == '\n' && (q != '`' || strings.HasPrefix(s[j:], sectionEnd)), c == '\r' && q != '`':
			return literal{i + 1, j, true, j}, true
		}
	}
	end := min(len(s), i+maxValue)
	return literal{i + 1, end, true, end}, true
}

// multiQuotedAt reads the literal in two or three quotes at i, also of several lines.
func multiQuotedAt(s string, i int) (literal, bool) {
	n := run(s, i, &quoteSet, 3) - i
	if end := strings.Index(s[i+n:min(len(s), i+maxValue)], s[i:i+n]); end > 0 && !strings.Contains(s[i:i+n+end], sectionEnd) {
		return trimLiteral(s, literal{i + n, i + n + end, true, i + n + end + n}), true
	}
	if n == 3 { // its end is not shown
		end := i + n + len(strings.TrimRight(s[i+n:lineEnd(s, i+n)], "\r\n"))
		return trimLiteral(s, literal{i + n, end, true, end}), end > i+n
	}
	return literal{}, false
}

// trimLiteral removes blanks and line ends on both sides.
func trimLiteral(s string, lit literal) literal {
	lit.start = run(s, lit.start, &spaceSet, lit.end-lit.start)
	lit.end = runBack(s, lit.end, &spaceSet, lit.end-lit.start)
	return lit
}

// A function takes a secret as one of its arguments.
type function struct {
	name string
	word string // folded, with the parenthesis
	arg  int    // which argument, from 0
	// how is one of functionForms, described at the top of rules/calls.rules.
	how string
}

var functionForms = []string{"plain", "key", "mixed"}

// parseCall reads "call ARGUMENT HOW FUNCTION...".
func parseCall(rs *ruleset, f []string) ([]named, error) {
	if len(f) < 3 || !allIn(f[0], &digitSet) || !slices.Contains(functionForms, f[1]) {
		return nil, fmt.Errorf("want \"call ARGUMENT HOW FUNCTION...\" with the number of the argument from 0, and HOW one of %s", strings.Join(functionForms, ", "))
	}
	arg, err := strconv.Atoi(f[0])
	if err != nil || arg > 9 {
		return nil, fmt.Errorf("the argument %s is not from 0 to 9", f[0])
	}
	var out []named
	for _, word := range f[2:] {
		name := f[0] + " " + word
		word = strings.ReplaceAll(word, "~", " ")
		rs.calls = append(rs.calls, function{"call " + name, strings.ToLower(word), arg, f[1]})
		out = append(out, named{name, []string{word}, ""})
	}
	return out, nil
}

// call masks the secret argument of a call, if it is a literal.
func (d *detector) call(index, begin, end int) {
	c := &d.calls[index]
	if d.contextFree || begin > 0 && isAlnum(d.s[begin]) && isAlnum(d.s[begin-1]) && !isUpper(d.s[begin]) && d.s[begin-1] != '_' {
		return
	}
	at := run(d.s, end, &spaceSet, maxGap)
	for n := 0; at < len(d.s); n++ {
		next, lit, ok := d.argument(at)
		text := d.text(lit)
		if n == c.arg {
			if ok && c.takes(text) {
				d.report("password", c.name, lit.start, lit.end)
			}
			return
		}
		if next >= len(d.s) || d.s[next] != ',' {
			return
		}
		at = run(d.s, next+1, &spaceSet, maxGap)
	}
}

// takes reports whether text can be the secret that c takes.
func (c *function) takes(text string) bool {
	if len(text) <= 2 || isPlaceholder(text) || isReference(text) || isCommonWords(text, 0) || isCode(text) || isPath(text) || isProse(text) {
		return false
	}
	switch c.how {
	case "key":
		return isKeyLike(text) || isUUID(text) || isVeryRandom(text)
	case "mixed":
		return (isMixed(text) || isHumanMade(text)) && !strings.Contains(text, "@")
	}
	return true
}

// argument reads the argument at at, before next. ok is set if it is one literal.
func (d *detector) argument(at int) (next int, lit literal, ok bool) {
	i := skipLiteralPrefix(d.s, at)
	inner, unwrapped := unwrapCall(d.s, i)
	if unwrapped {
		i = skipLiteralPrefix(d.s, inner)
	}
	if i < len(d.s) && quoteSet.has(d.s[i]) && (unwrapped || !strings.ContainsAny(d.s[at:i], "{[")) {
		lit, ok = quotedAt(d.s, i)
		return d.afterArgument(lit.next, unwrapped), lit, ok
	}
	end, depth := at, 0
	for ; end < len(d.s) && end-at < maxArgument; end++ {
		switch c := d.s[end]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth <= 0 && strings.IndexByte(",()\n;", c) >= 0:
			return end, literal{}, false
		}
	}
	return end, literal{}, false
}

// afterArgument skips a method and the end of a call behind the literal that ends
// at i, to the comma or parenthesis. unwrapped is set for the argument of a call.
func (d *detector) afterArgument(i int, unwrapped bool) int {
	if strings.HasPrefix(d.s[i:], ".") {
		i = run(d.s, i+1, &codeIdent, maxName)
	}
	if strings.HasPrefix(d.s[i:], "()") {
		i += len("()")
	} else if unwrapped && strings.HasPrefix(d.s[i:], ")") {
		i++
	}
	return run(d.s, i, &spaceSet, maxGap)
}
