package redaction

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A tokenRule is a format of tokens, which are recognized by their shape alone.
type tokenRule struct {
	name, class string
	parts       []tokenPart
	// anchor is the index of the literal that triggers the rule, or -1: then the
	// rule is tried on every long run of token bytes.
	anchor int
	// free tokens may follow a letter or digit: the literal is specific enough.
	free bool
	// If random is set, the variable part has to look random, because other text
	// has the shape too.
	random bool
	check  check
}

// A tokenPart is a literal, or a run of least to most bytes of a set.
type tokenPart struct {
	literal     string
	set         *charset
	least, most int
}

// parseToken reads "token CLASS SHAPE [check=NAME] EXAMPLE".
func parseToken(rs *ruleset, f []string) ([]named, error) {
	t, check := tokenRule{}, ""
	if len(f) > 2 && strings.HasPrefix(f[2], "check=") {
		known := false
		check = strings.TrimPrefix(f[2], "check=")
		if t.check, known = checks[check]; !known {
			return nil, fmt.Errorf("the checksum %q is unknown", check)
		}
		f = append(f[:2:2], f[3:]...)
	}
	if len(f) != 3 || !validClass(f[0]) {
		return nil, errors.New("want \"token CLASS SHAPE [check=NAME] EXAMPLE\": a class of lower-case letters, digits and -, a shape such as corp_{alnum:20+}, a token of that shape")
	}
	var err error
	if t.parts, err = parseShape(f[1]); err != nil {
		return nil, err
	}
	t.class, t.name = f[0], "token "+f[1]
	rs.classes[t.class] = true
	least := t.setAnchor()
	t.setFree(least)
	t.random = check == "random" || check != "none" && t.anchor == 0 && least < 40 && len(t.anchorText()) < 4
	rs.tokens = append(rs.tokens, t)
	return []named{{f[1], f[2:], "key = \"«@»\"⏎see «@» there"}}, nil
}

// shapeRun matches a run of a shape. Text in braces without a colon is literal, as in
// {SSHA}.
var shapeRun = regexp.MustCompile(`\{([^{}:]*):(\d*)(\+|-(\d+)|)([^{}]*)\}`)

// parseShape reads literals and runs such as {alnum:20}, {hex:8-12} and {word:20+}.
func parseShape(s string) (parts []tokenPart, err error) {
	at := 0
	literal := func(text string) {
		if text != "" {
			parts = append(parts, tokenPart{literal: text})
		}
	}
	for _, m := range shapeRun.FindAllStringSubmatchIndex(s, -1) {
		literal(s[at:m[0]])
		at = m[1]
		set, known := charsets[s[m[2]:m[3]]]
		least, err := strconv.Atoi(s[m[4]:m[5]])
		most := least
		switch s[m[6]:m[7]] {
		case "":
		case "+":
			most = maxToken
		default:
			most, _ = strconv.Atoi(s[m[8]:m[9]]) // digits
		}
		if !known || err != nil || m[10] < m[11] || most < max(1, least) || most > maxToken {
			return nil, fmt.Errorf("%q of the shape is no run such as {alnum:20}, {hex:8-12} or {word:20+}", s[m[0]:m[1]])
		}
		parts = append(parts, tokenPart{set: &set, least: least, most: most})
	}
	literal(s[at:])
	if len(parts) == 0 || len(parts) == 1 && len(parts[0].literal) < 8 {
		return nil, errors.New("the shape has no run and no literal of 8 bytes")
	}
	return parts, nil
}

// setAnchor makes the longest literal the anchor and returns the least bytes of all runs.
func (t *tokenRule) setAnchor() (least int) {
	t.anchor = -1
	for i, p := range t.parts {
		if len(p.literal) >= 2 && len(p.literal) > len(t.anchorText()) {
			t.anchor = i
		}
		least += p.least
	}
	return least
}

// setFree derives from the anchor whether it is specific enough within a word.
func (t *tokenRule) setFree(least int) {
	if t.anchor < 0 {
		return
	}
	literal := t.anchorText()
	mark := !isAlnum(lastByte(literal))
	mixed := strings.ToUpper(literal) != literal && strings.ToLower(literal) != literal
	t.free = !isAlnum(literal[0]) || len(literal) >= 5 && mark || least >= 24 && (mark || mixed && len(literal) >= 4)
}

// contextFree reports whether the literals say that the text is a token.
func (t *tokenRule) contextFree() bool {
	n := 0
	for _, p := range t.parts {
		n += len(p.literal)
	}
	return n >= 4 || t.anchor > 0
}

// token masks a token of the rule whose anchor is s[begin:end].
func (d *detector) token(index, begin, end int) {
	t := &d.tokens[index]
	if d.s[begin:end] != t.anchorText() || t.anchor == 0 && !t.free && followsAlnum(d.s, begin) {
		return
	}
	first, last, ok := t.match(d.s, begin)
	if d.work += last - first; ok {
		d.reportToken(t, first, last, begin)
	}
}

// reportToken masks the token s[first:last], whose anchor is at begin.
func (d *detector) reportToken(t *tokenRule, first, last, begin int) {
	token := d.s[first:last]
	d.why = "format"
	switch {
	case t.check.valid != nil && t.check.valid(token):
		d.why = "valid checksum"
	case t.check.required || !t.takes(token, d.s[begin+len(t.anchorText()):last]):
		d.miss(t.name, "not random", first, last)
		return
	}
	before := strings.TrimRight(d.s[max(0, first-maxGap):first], " \t\r\n\"'`+\\n")
	if t.class == "private-key" && strings.HasSuffix(before, "-----") {
		return // the label of the block decides
	}
	d.report(t.class, t.name, first, last)
	switch {
	case t.class == "aws-key":
		d.awsSecretAfter(last)
	case t.class == "private-key" && len(token) <= maxKeyWidth: // the first of several lines
		d.key(t.name, first)
	}
}

// takes reports whether a token of the shape is no other text. body is what is
// behind the anchor.
func (t *tokenRule) takes(token, body string) bool {
	const few = 6 // different bytes that a placeholder such as ACaaaaaa has, at most
	switch {
	case t.anchor < 0:
		return distinct(token) > few
	case t.anchor > 0 && t.parts[0].least > few:
		return distinct(token[:t.parts[0].least]) > few/2
	case t.random:
		return (isRandom(body) || isGibberish(body)) && !allIn(body, &decimalSet)
	}
	return true
}

func (t *tokenRule) anchorText() string {
	if t.anchor < 0 {
		return ""
	}
	return t.parts[t.anchor].literal
}

// match matches the parts of t around its anchor at i. last is how far the text
// was read, also if ok is not set.
func (t *tokenRule) match(s string, i int) (first, last int, ok bool) {
	first, last, ok = i, i, true
	for k := t.anchor - 1; ok && k >= 0; k-- {
		first, ok = t.parts[k].before(s, first)
	}
	if p := t.parts[0].set; !ok || t.anchor > 0 && p != nil && first > 0 && p.has(s[first-1]) && isAlnum(s[first]) && isAlnum(s[first-1]) {
		return first, i, false // no match, or a longer run
	}
	begin := i // of the last part
	for k := max(0, t.anchor); ok && k < len(t.parts); k++ {
		begin = last
		last, ok = t.parts[k].after(s, begin)
	}
	if p := &t.parts[len(t.parts)-1]; p.set == nil {
		return first, last, ok && !continuesWord(s, last)
	} else if ok {
		last, ok = t.ends(s, p, begin, last)
	}
	return first, last, ok
}

// after returns the end of the part that begins at i, and whether there is one.
func (p *tokenPart) after(s string, i int) (end int, ok bool) {
	if p.set == nil {
		return i + len(p.literal), strings.HasPrefix(s[i:], p.literal)
	}
	end = run(s, i, p.set, p.most)
	return end, end-i >= p.least
}

// before returns the begin of the part that ends at i, and whether there is one.
func (p *tokenPart) before(s string, i int) (begin int, ok bool) {
	if p.set == nil {
		return i - len(p.literal), strings.HasSuffix(s[:i], p.literal)
	}
	begin = runBack(s, i, p.set, p.most)
	return begin, i-begin >= p.least
}

// ends reports whether the last part p, s[at:last], ends as a token does, and where:
// before the marks of the text around the token.
func (t *tokenRule) ends(s string, p *tokenPart, at, last int) (end int, ok bool) {
	end = at + len(strings.TrimRight(s[at:last], ".,:?&"))
	goesOn := p.most < maxToken && last < len(s) && p.set.has(s[last]) // longer than the format allows
	if !goesOn && !t.free && strings.IndexByte("+/=", byteAt(s, end-1)) < 0 {
		goesOn = continuesWord(s, end)
	}
	return end, !goesOn && end-at >= p.least
}

// awsSecretAfter masks the secret shortly after the id of a key: 40 bytes of base64.
func (d *detector) awsSecretAfter(at int) {
	limit := min(len(d.s), at+60)
	for at < limit {
		begin := at
		for begin < limit && !plain64.has(d.s[begin]) {
			begin++
		}
		at = run(d.s, begin, &plain64, maxToken)
		if at-begin > 40 && d.s[at-41] == '/' && !isWordy(d.s[at-40:at]) {
			begin = at - 40 // below a path
		}
		if at-begin == 40 && isMixedCase(d.s[begin:at]) {
			d.report("aws-key", "secret after key id", begin, at)
			return
		}
	}
}

// schemes are the authorization schemes and what their credentials look like.
var schemes = []struct {
	words     []string
	class     string
	looksLike func(text string) bool
}{
	{[]string{"bearer", "ssws"}, "bearer-token", func(text string) bool {
		return (isRandom(text) || isVeryRandom(text)) && !isSource(text) && !isPath(text) && !isCommonWords(text, 1)
	}},
	{[]string{"basic", "auth plain"}, "basic-credentials", func(text string) bool {
		return isEncodedPair(text) || len(text) >= 20 && isVeryRandom(text)
	}},
}

// scheme masks the credentials after the word s[begin:end] of a scheme. In a header,
// any text that is no reference is a credential; elsewhere the word may be prose.
func (d *detector) scheme(kind, begin, end int) {
	at := run(d.s, end, &schemeGap, 8)
	if n := len(d.detections); at == end || isAlnum(byteAt(d.s, begin-1)) || n > 0 && d.detections[n-1].start == at {
		return // no scheme, or its credentials were found as the value of a header
	}
	scheme := &schemes[kind]
	stop := run(d.s, at, &bearerSet, maxToken)
	d.work += stop - at
	text := strings.TrimRight(d.s[at:stop], ".,:|")
	const gap = 24
	inHeader := strings.Contains(strings.ToLower(d.s[max(0, begin-gap):begin]), "authorization")
	isWord := lists["schemeword"][strings.ToLower(text)] || text == strings.ToUpper(text) && isCommonWords(text, 0)
	if len(text) >= 4 && (scheme.looksLike(text) || inHeader && !isReference(text) && !isSource(text) && !isWord) {
		d.report(scheme.class, "authorization", at, at+len(text))
	}
}

// isEncodedPair reports whether text is the base64 of user:password.
func isEncodedPair(text string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	isBinary := func(r rune) bool { return r < ' ' && r != 0 || r >= 0x7f }
	return err == nil && len(data) >= 3 && bytes.ContainsAny(data, ":\x00") && bytes.IndexFunc(data, isBinary) < 0
}
