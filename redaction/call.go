package redaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A function is an entry of calls.txt: one of its arguments is a secret.
type function struct {
	word string // folded, with the parenthesis
	arg  int    // which argument, from 0
	// how is one of functionForms, described at the top of calls.txt.
	how string
	// rule is the rule of its detections.
	rule string
}

var functionForms = []string{"plain", "key", "mixed", "all"}

func parseFunctions(data string) ([]function, error) {
	var out []function
	for n, f := range entries(data) {
		arg, err := strconv.Atoi(f[0])
		if err != nil || len(f) < 3 || !slices.Contains(functionForms, f[1]) {
			return nil, fmt.Errorf("calls on line %d: want \"argument plain|key|mixed|all function...\", got %q", n, f)
		}
		for _, word := range f[2:] {
			word = strings.ReplaceAll(word, "~", " ")
			out = append(out, function{word, arg, f[1], "argument of " + strings.Trim(word, ".(")})
		}
	}
	return out, nil
}

// call masks the secret argument of a call, if it is a literal.
func (d *detector) call(index, begin, end int) {
	c := &d.functions[index]
	if d.contextFree || begin > 0 && isAlnum(d.s[begin]) && isAlnum(d.s[begin-1]) && !isUpper(d.s[begin]) && d.s[begin-1] != '_' {
		return
	}
	at := run(d.s, end, &spaceSet, maxGap)
	for n := 0; at < len(d.s); n++ {
		next, lit, ok := d.argument(at)
		text := d.text(lit)
		if n == c.arg {
			if ok && c.takes(text) {
				d.report("password", c.rule, lit.start, lit.end)
			}
			return
		}
		if c.how == "all" && ok && len(text) > 2 && !isReference(text) && !isPlaceholder(text) {
			d.report("username", c.rule, lit.start, lit.end)
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

// argument reads the argument at at. ok is set if it is one literal. next is the
// offset of what follows it.
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

// maxArgument bounds an argument that is skipped.
const maxArgument = 128

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
