package redaction

import (
	"fmt"
	"strconv"
	"strings"
)

// A function is an entry of calls.txt: one of its arguments is a secret.
type function struct {
	word string // folded, with the parenthesis
	arg  int    // which one, from 0
	// how says what else it has to be, and what goes with it.
	how string
	// rule says where a secret was found.
	rule string
}

func parseFunctions(data string) ([]function, error) {
	var out []function
	for line := range strings.Lines(data) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		arg, err := strconv.Atoi(f[0])
		if err != nil || len(f) < 3 || !strings.Contains(" plain key mixed all ", " "+f[1]+" ") {
			return nil, fmt.Errorf("calls: want \"argument plain|key|mixed|all function...\", got %q", strings.TrimSpace(line))
		}
		for _, word := range f[2:] {
			word = strings.ReplaceAll(word, "~", " ")
			out = append(out, function{word, arg, f[1], "argument of " + strings.Trim(word, ".(")})
		}
	}
	return out, nil
}

// call masks the argument of a call, if it is a literal.
func (d *detector) call(c *function, begin, end int) {
	if d.certain || begin > 0 && isAlnum(d.s[begin]) && isAlnum(d.s[begin-1]) && !isUpper(d.s[begin]) && d.s[begin-1] != '_' {
		return
	}
	at := run(d.s, end, &spaceSet, maxGap)
	for n := 0; at < len(d.s); n++ {
		next, lit, ok := d.argument(at)
		text := d.s[lit.start:lit.end]
		if n == c.arg {
			if ok && isArgumentOf(c, text) {
				d.found("password", c.rule, lit.start, lit.end)
			}
			return
		}
		if c.how == "all" && ok && len(text) > 2 && !standsFor(text) && !isPlaceholder(text) {
			d.found("username", c.rule, lit.start, lit.end)
		}
		if next >= len(d.s) || d.s[next] != ',' {
			return
		}
		at = run(d.s, next+1, &spaceSet, maxGap)
	}
}

// isArgumentOf reports whether text is the secret that c takes.
func isArgumentOf(c *function, text string) bool {
	if len(text) <= 2 || isPlaceholder(text) || standsFor(text) || dullWords(text, 0) || isCode(text) || isPath(text) || isProse(text) {
		return false
	}
	switch c.how {
	case "key":
		return keyLike(text) || isUUID(text) || veryRandom(text)
	case "mixed":
		return (isMixed(text) || human(text)) && !strings.Contains(text, "@")
	}
	return true
}

// argument reads the argument at at; ok is set if it is one literal. next is
// the offset of what follows it.
func (d *detector) argument(at int) (next int, lit literal, ok bool) {
	i := skipLiteralPrefix(d.s, at)
	inner, wraps := wrapped(d.s, i)
	if wraps {
		i = skipLiteralPrefix(d.s, inner)
	}
	if i < len(d.s) && quoteSet.has(d.s[i]) && (wraps || !strings.ContainsAny(d.s[at:i], "{[")) {
		lit, ok = quotedAt(d.s, i)
		return d.afterArgument(lit.next, wraps), lit, ok
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

// maxArgument bounds an argument that is passed over.
const maxArgument = 128

// afterArgument is where the comma or the parenthesis stands after an argument
// that ends at i, such as one that bytes are made of. wrapped is set for one
// within a call of its own.
func (d *detector) afterArgument(i int, wrapped bool) int {
	if strings.HasPrefix(d.s[i:], ".") {
		i = run(d.s, i+1, &goIdent, maxName)
	}
	if strings.HasPrefix(d.s[i:], "()") {
		i += len("()")
	} else if wrapped && strings.HasPrefix(d.s[i:], ")") {
		i++
	}
	return run(d.s, i, &spaceSet, maxGap)
}
