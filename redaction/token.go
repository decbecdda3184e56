package redaction

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
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
	// check reports whether the checksum of a token is valid. It may be nil.
	check func(token string) bool
}

// A tokenPart is a literal, or a run of least to most bytes of a set.
type tokenPart struct {
	literal     string
	set         *charset
	least, most int
}

// parseToken reads "token CLASS SHAPE [check=NAME] EXAMPLE".
func parseToken(rs *ruleset, f []string) ([]named, error) {
	t := tokenRule{anchor: -1}
	if len(f) > 2 && strings.HasPrefix(f[2], "check=") {
		name := strings.TrimPrefix(f[2], "check=")
		if t.check = checks[name]; t.check == nil {
			return nil, fmt.Errorf("the checksum %q is unknown", name)
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
	t.setAnchor()
	rs.tokens = append(rs.tokens, t)
	return []named{{f[1], f[2:], "key = \"«@»\"⏎see «@» there"}}, nil
}

// parseShape reads literals and runs such as {alnum:20}, {hex:8-12} and {word:20+}.
func parseShape(s string) ([]tokenPart, error) {
	var out []tokenPart
	for s != "" {
		open := strings.IndexByte(s, '{')
		count, end := -1, strings.IndexByte(s, '}')
		if open == 0 && end > 0 {
			count = strings.IndexByte(s[:end], ':')
		}
		if count < 0 { // text in braces without a colon is literal, as in {SSHA}
			end = max(1, open)
			if open < 0 {
				end = len(s)
			}
			if n := len(out); n > 0 && out[n-1].set == nil {
				out[n-1].literal += s[:end]
			} else {
				out = append(out, tokenPart{literal: s[:end]})
			}
		} else if p, ok := parseRun(s[1:count], s[count+1:end]); ok {
			out = append(out, p)
			end++
		} else {
			return nil, fmt.Errorf("%q of the shape is no run such as {alnum:20}, {hex:8-12} or {word:20+}", s[:end+1])
		}
		s = s[end:]
	}
	if len(out) == 0 || len(out) == 1 && len(out[0].literal) < 8 {
		return nil, errors.New("the shape has no run and no literal of 8 bytes")
	}
	return out, nil
}

// parseRun reads a run of a charset, whose count is such as 20, 8-12 or 20+.
func parseRun(set, count string) (p tokenPart, ok bool) {
	chars, known := charsets[set]
	least, most, ranged := strings.Cut(strings.TrimSuffix(count, "+"), "-")
	var errs [2]error
	p.set = &chars
	p.least, errs[0] = strconv.Atoi(least)
	p.most = p.least
	if ranged {
		p.most, errs[1] = strconv.Atoi(most)
	} else if strings.HasSuffix(count, "+") {
		p.most = maxToken
	}
	return p, known && errors.Join(errs[:]...) == nil && p.least >= 0 && p.most >= p.least && p.most > 0 && p.most <= maxToken
}

// setAnchor makes the longest literal the anchor, and derives how strict the rule
// has to be from what is known before and after it.
func (t *tokenRule) setAnchor() {
	literal, least := "", 0
	for i, p := range t.parts {
		if len(p.literal) >= 2 && len(p.literal) > len(literal) {
			t.anchor, literal = i, p.literal
		}
		least += p.least
	}
	if t.anchor < 0 {
		return
	}
	mark := !isAlnum(lastByte(literal))
	mixed := strings.ToUpper(literal) != literal && strings.ToLower(literal) != literal
	t.free = !isAlnum(literal[0]) || len(literal) >= 5 && mark || least >= 24 && (mark || mixed && len(literal) >= 4)
	t.random = t.anchor == 0 && least < 40 && len(literal) < 4 && literal != "SG." && t.class != "aws-key" || t.class == "model-key"
}

// token masks a token of the rule whose anchor is s[begin:end].
func (d *detector) token(index, begin, end int) {
	t := &d.tokens[index]
	if d.s[begin:end] != t.parts[t.anchor].literal {
		return
	}
	if t.anchor == 0 && !t.free && (followsAlnum(d.s, begin) || inBase64(d.s, begin)) {
		return
	}
	first, last, ok := t.match(d.s, begin)
	if d.exceeded(&d.tokenRuns, t.class, begin, last) || !ok {
		return
	}
	d.reportToken(t, first, last, begin)
}

// reportToken masks the token s[first:last], whose anchor is at begin.
func (d *detector) reportToken(t *tokenRule, first, last, begin int) {
	token := d.s[first:last]
	d.why = "format"
	switch {
	case t.check != nil && t.check(token):
		d.why = "valid checksum"
	case !t.takes(token, d.s[begin+len(t.anchorText()):last]):
		d.miss(t.name, "not random", first, last)
		return
	}
	d.report(t.class, t.name, first, last)
	if t.class == "aws-key" {
		d.awsSecretAfter(last)
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
	case t.anchor == 0 && allIn(token, &hexSet):
		return false
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
	first = i
	for k := t.anchor - 1; k >= 0; k-- {
		p, at := &t.parts[k], first
		if p.set == nil {
			if !strings.HasSuffix(s[:at], p.literal) {
				return first, i, false
			}
			first -= len(p.literal)
		} else if first = runBack(s, at, p.set, p.most); at-first < p.least {
			return first, i, false
		}
	}
	if t.anchor > 0 && t.parts[0].set != nil && first > 0 && t.parts[0].set.has(s[first-1]) && isAlnum(s[first]) && isAlnum(s[first-1]) {
		return first, i, false // a longer run
	}
	last = i
	for k := max(0, t.anchor); k < len(t.parts); k++ {
		p, at := &t.parts[k], last
		if p.set == nil {
			if !strings.HasPrefix(s[at:], p.literal) {
				return first, last, false
			}
			last += len(p.literal)
			continue
		}
		if last = run(s, at, p.set, p.most); k == len(t.parts)-1 {
			return first, last, t.ends(s, p, at, &last)
		}
		if last-at < p.least {
			return first, last, false
		}
	}
	return first, last, !continuesWord(s, last)
}

// ends reports whether the last part, which begins at at, ends at last as a token
// does, and moves last before the marks of the text around the token.
func (t *tokenRule) ends(s string, p *tokenPart, at int, last *int) bool {
	stop := at + len(strings.TrimRight(s[at:*last], ".,:?&"))
	if stop-at < p.least {
		return false
	}
	goesOn := *last < len(s) && p.set.has(s[*last]) // longer than the format allows
	if !goesOn && !t.free && strings.IndexByte("+/=", byteAt(s, stop-1)) < 0 {
		goesOn = continuesWord(s, stop)
	}
	*last = stop
	return !goesOn
}

// inBase64 reports whether a long run of base64 goes on at i.
func inBase64(s string, i int) bool {
	return i > 0 && (s[i-1] == '/' || s[i-1] == '+') && i-runBack(s, i, &plain64, 24) >= 20
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
		if at-begin == 40 && isMixedCase(d.s[begin:at]) {
			d.report("aws-key", "secret after key id", begin, at)
			return
		}
	}
}

// jwt masks a JSON web token, found by its header in base64 or twice in base64.
func (d *detector) jwt(_, begin, _ int) {
	s := d.s
	if !beginsWith(s[begin:], []string{"eyJ", "ZXlK", "ZXlJ"}) || followsAlnum(s, begin) {
		return
	}
	head := run(s, begin, &base64Set, maxToken)
	end := run(s, begin, &jwtSet, maxToken)
	if d.exceeded(&d.tokenRuns, "jwt", begin, end) {
		return
	}
	end = begin + len(strings.TrimRight(s[begin:end], "."))
	switch {
	case end-begin < 40:
	case head < end && s[head] == '.' && end-head > 10:
		d.report("jwt", "jwt", begin, end)
	case s[begin] == 'Z' && head-begin >= 60:
		d.report("jwt", "jwt in base64", begin, head)
	case hasSecretField(s[begin:head]):
		d.report("token", "json in base64", begin, head)
	}
}

// hasSecretField reports whether base64 text holds JSON with a field of a secret.
func hasSecretField(s string) bool {
	s = strings.TrimRight(s, "=")
	data, err := base64.RawStdEncoding.DecodeString(s[:len(s)&^3])
	if err != nil {
		data, err = base64.RawURLEncoding.DecodeString(s[:len(s)&^3])
	}
	if err != nil {
		return false
	}
	return containsAny(strings.ToLower(string(data)), heads["secretfield"])
}

// The kinds of authorization schemes.
const (
	bearerScheme = iota
	basicScheme
	digestScheme
)

// scheme masks the credentials after the authorization scheme s[begin:end].
func (d *detector) scheme(kind, begin, end int) {
	if d.contextFree || begin > 0 && isAlnum(d.s[begin-1]) || end >= len(d.s) {
		return
	}
	at := run(d.s, end, &schemeGap, 8)
	if n := len(d.detections); at == end || n > 0 && d.detections[n-1].start == at {
		return // nothing follows, or it was found as the value of a header
	}
	stop := run(d.s, at, &bearerSet, maxToken)
	if d.exceeded(&d.schemes, "bearer-token", at, stop) {
		return
	}
	text := strings.TrimRight(d.s[at:stop], ".,:|")
	stop = at + len(text)
	switch kind {
	case bearerScheme:
		if d.inAuthorization(begin) && isCredential(text, 4) ||
			len(text) >= 8 && (isRandom(text) || isVeryRandom(text)) && !isSource(text) && !isPath(text) && !isCommonWords(text, 1) {
			d.report("bearer-token", "authorization", at, stop)
		}
	case basicScheme:
		// In a header the credentials may be cut off and encode no whole pair.
		if d.inAuthorization(begin) && isCredential(text, 8) ||
			len(text) >= 8 && (isEncodedPair(text) || len(text) >= 20 && isVeryRandom(text)) {
			d.report("basic-credentials", "authorization", at, stop)
		}
	case digestScheme:
		// p4 and other programs print digests of files after the word.
		if d.inAuthorization(begin) {
			d.digestResponse(at)
		}
	}
}

// digestResponse masks the response of a digest: it lets a password be guessed.
func (d *detector) digestResponse(at int) {
	const field = `response="`
	line := d.s[at:lineEndWithin(d.s, at, maxCommand)]
	if i := strings.Index(line, field); i >= 0 {
		begin := at + i + len(field)
		if end := run(d.s, begin, &hexSet, 128); end-begin >= 32 {
			d.report("digest-response", "authorization", begin, end)
		}
	}
}

// inAuthorization reports whether the scheme at i is in an Authorization header,
// where any text after it is a credential.
func (d *detector) inAuthorization(i int) bool {
	const gap = 24
	return strings.Contains(strings.ToLower(d.s[max(0, i-gap):i]), "authorization")
}

// isCredential reports whether text after a scheme is no reference and no prose.
func isCredential(text string, least int) bool {
	return len(text) >= least && !isReference(text) && !isSource(text) && !lists["schemeword"][strings.ToLower(text)] && (text != strings.ToUpper(text) || !isCommonWords(text, 0))
}

// isEncodedPair reports whether text is the base64 of user:password.
func isEncodedPair(text string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	isBinary := func(r rune) bool { return r < ' ' && r != 0 || r >= 0x7f }
	return err == nil && len(data) >= 3 && bytes.ContainsAny(data, ":\x00") && bytes.IndexFunc(data, isBinary) < 0
}
