package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

const (
	maxGap   = 80      // blanks and quotes before a token
	maxToken = 8 << 10 // a token; the longest known ones have a few thousand bytes
)

// A rule is a format of tokens, which are recognized by their shape alone.
type rule struct {
	name, class string
	parts       []part
	// anchor is the index of the literal that triggers the rule, or -1: then the
	// rule is tried on every long run of token bytes.
	anchor int
	// free tokens may follow a letter or digit: the literal is specific enough.
	free bool
	// check is what a token has to fulfil besides the shape: "random" if the variable part has to look
	// random, because other text has the shape too, "json" if it has to be JSON in base64 with a field of a
	// secret, or "". "none" keeps "random" from a rule whose literals are short.
	check string
}

// A part is a literal, or a run of least to most bytes of a set.
type part struct {
	literal     string
	set         *lex.Set
	least, most int
}

// Add reads "token CLASS SHAPE [check=NAME] EXAMPLE".
func (r *Rules) Add(f []string) ([]judge.Subject, error) {
	t := rule{anchor: -1}
	if len(f) == 4 {
		t.check, _ = strings.CutPrefix(f[2], "check=")
		if f = []string{f[0], f[1], f[3]}; t.check != "random" && t.check != "json" && t.check != "none" {
			return nil, fmt.Errorf("the check %q is unknown: want random, json or none", t.check)
		}
	}
	if len(f) != 3 || !judge.ValidClass(f[0]) {
		return nil, errors.New("want \"token CLASS SHAPE [check=NAME] EXAMPLE\": a class of lower-case letters, digits and -, a shape such as corp_{alnum:20+}, a token of that shape")
	}
	var err error
	if t.parts, err = parseShape(f[1]); err != nil {
		return nil, err
	}
	t.class, t.name = f[0], "token "+f[1]
	r.Names.Classes[t.class] = true
	least := 0 // bytes of all runs
	for i, p := range t.parts {
		if len(p.literal) >= 2 && len(p.literal) > len(t.anchorText()) {
			t.anchor = i
		}
		least += p.least
	}
	if literal := t.anchorText(); literal != "" { // is it specific enough within a word?
		mark := !lex.IsAlnum(lex.LastByte(literal))
		mixed := strings.ToUpper(literal) != literal && strings.ToLower(literal) != literal
		t.free = !lex.IsAlnum(literal[0]) || len(literal) >= 5 && mark || least >= 24 && (mark || mixed && len(literal) >= 4)
	}
	if t.check == "" && t.anchor == 0 && least < 40 && len(t.anchorText()) < 4 {
		t.check = "random"
	}
	r.tokens = append(r.tokens, t)
	return []judge.Subject{{Rule: f[1], Text: f[2]}}, nil
}

// shapeRun matches a run of a shape. Text in braces without a colon is literal, as in
// {SSHA}.
var shapeRun = regexp.MustCompile(`\{([^{}:]*):(\d*)(\+|-(\d+)|)([^{}]*)\}`)

// parseShape reads literals and runs such as {alnum:20}, {hex:8-12} and {word:20+}.
func parseShape(s string) (parts []part, err error) {
	at := 0
	literal := func(text string) {
		if text != "" {
			parts = append(parts, part{literal: text})
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
			most, _ = strconv.Atoi(s[m[8]:m[9]]) // lex.Digits
		}
		if !known || err != nil || m[10] < m[11] || most < max(1, least) || most > maxToken {
			return nil, fmt.Errorf("%q of the shape is not a run such as {alnum:20}, {hex:8-12} or {word:20+}", s[m[0]:m[1]])
		}
		parts = append(parts, part{set: &set, least: least, most: most})
	}
	literal(s[at:])
	if len(parts) == 0 || len(parts) == 1 && len(parts[0].literal) < 8 {
		return nil, errors.New("the shape has no run and no literal of 8 bytes")
	}
	return parts, nil
}

// contextFree reports whether the literals say that the text is a token.
func (t *rule) contextFree() bool {
	n := 0
	for _, p := range t.parts {
		n += len(p.literal)
	}
	return n >= 4 || t.anchor > 0
}

// token masks a token of the rule whose anchor is s[begin:end].
func (c *scan) token(index, begin, end int) {
	t := &c.tokens[index]
	if c.s[begin:end] != t.anchorText() || t.anchor == 0 && !t.free && lex.FollowsAlnum(c.s, begin) {
		return
	}
	if first, last, ok := t.match(c.s, begin, &c.runEnds[index]); ok {
		c.reportToken(t, first, last, begin)
	}
}

// reportToken masks the token s[first:last], whose anchor is at begin.
func (c *scan) reportToken(t *rule, first, last, begin int) {
	const few = 6 // different bytes that a placeholder such as ACaaaaaa has, at most
	token, body := c.s[first:last], c.s[begin+len(t.anchorText()):last]
	is := true
	switch {
	case t.check == "json":
		is = hasSecretField(token)
	case t.anchor < 0:
		is = lex.Distinct(token) > few
	case t.anchor > 0 && t.parts[0].least > few:
		is = lex.Distinct(token[:t.parts[0].least]) > few/2
	case t.check == "random":
		is = (judge.IsRandom(body) || judge.IsGibberish(body)) && !lex.AllIn(body, &decimalSet)
	}
	before := strings.TrimRight(c.s[max(0, first-maxGap):first], " \t\r\n\"'`+\\n")
	switch {
	case !is:
		c.left = append(c.left, judge.Span{Start: first, End: last, Reason: judge.Reason{Rule: t.name, Why: "not random"}})
	case t.class == "private-key" && strings.HasSuffix(before, "-----"): // the label of the block decides
	default:
		c.report(t.class, t.name, "format", first, last)
		if t.class == "aws-key" {
			c.awsSecretAfter(last)
		}
	}
}

// hasSecretField reports whether base64 text holds JSON with a field of a secret.
func hasSecretField(s string) bool {
	s = strings.TrimRight(s, "=")
	data, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s[:len(s)&^3]))
	return err == nil && lex.ContainsAny(strings.ToLower(string(data)), judge.Heads("secretfield"))
}

func (t *rule) anchorText() string {
	if t.anchor < 0 {
		return ""
	}
	return t.parts[t.anchor].literal
}

// match matches the parts of t around its anchor at i. last is how far the text
// was read, even if ok is not set. runEnd is where the run of the last part ended that was
// read before i, or 0.
func (t *rule) match(s string, i int, runEnd *int) (first, last int, ok bool) {
	first, last = i, i
	for k := t.anchor - 1; k >= 0; k-- {
		p, end := &t.parts[k], first
		if p.set == nil {
			first, ok = end-len(p.literal), strings.HasSuffix(s[:end], p.literal)
		} else {
			first = lex.RunBack(s, end, p.set, p.most)
			ok = end-first >= p.least
		}
		if !ok {
			return first, i, false
		}
	}
	if p := t.parts[0].set; t.anchor > 0 && p != nil && first > 0 && p.Has(s[first-1]) && lex.IsAlnum(s[first-1]) {
		return first, i, false // a longer run
	}
	begin := i // of the last part
	for k := max(0, t.anchor); k < len(t.parts); k++ {
		p := &t.parts[k]
		begin = last
		switch {
		case p.set == nil:
			last, ok = begin+len(p.literal), strings.HasPrefix(s[begin:], p.literal)
		case k == t.anchor+1 && k == len(t.parts)-1 && begin < *runEnd: // s[begin:*runEnd] is in the set
			known := min(*runEnd, begin+p.most)
			last = lex.Run(s, known, p.set, begin+p.most-known)
			ok = last-begin >= p.least
		default:
			last = lex.Run(s, begin, p.set, p.most)
			ok = last-begin >= p.least
		}
		if !ok {
			return first, last, false
		}
	}
	if t.anchor == len(t.parts)-2 {
		*runEnd = last
	}
	p := &t.parts[len(t.parts)-1]
	if p.set == nil {
		return first, last, !lex.IsAlnum(lex.ByteAt(s, last))
	}
	end := begin + len(strings.TrimRight(s[begin:last], ".,:?&"))      // marks of the text around the token
	goesOn := p.most < maxToken && last < len(s) && p.set.Has(s[last]) // longer than the format allows
	if !goesOn && !t.free && strings.IndexByte("+/=", lex.ByteAt(s, end-1)) < 0 {
		goesOn = lex.IsAlnum(lex.ByteAt(s, end))
	}
	return first, end, !goesOn && end-begin >= p.least
}

// awsSecretAfter masks the secret shortly after the id of a key: 40 bytes of base64.
func (c *scan) awsSecretAfter(at int) {
	for limit := min(len(c.s), at+60); at < limit; at++ {
		begin := at
		if at = lex.Run(c.s, begin, &lex.Plain64, maxToken); at-begin > 40 && c.s[at-41] == '/' {
			begin = at - 40 // below a path
		}
		if at-begin == 40 && judge.IsMixedCase(c.s[begin:at]) {
			c.report("aws-key", "secret after key id", "", begin, at)
			return
		}
	}
}

var decimalSet = lex.SetOf(lex.Digits, ".")

// charsets are the charsets of token rules.
var charsets = map[string]lex.Set{
	"azure":   lex.SetOf(lex.Digits, lex.Letters, "_~.-"),
	"base32":  lex.Base32Set,
	"bech32":  lex.SetOf("qpzry9x8gf2tvdw0s3jn54khce6mua7l"),
	"caps":    lex.SetOf(lex.Uppers),
	"discord": lex.SetOf("MNO"),
	"hex":     lex.HexSet,
	"lalnum":  lex.SetOf(lex.Digits, lex.Lowers),
	"lhex":    lex.LowerHex,
	"jwt":     lex.SetOf(lex.Digits, lex.Letters, "_-.+/="),
	"mail":    lex.SetOf(lex.Digits, lex.Letters, "-_.@"),
	"nkind":   lex.SetOf("ACNOUXPD"),
	"url":     lex.SetOf(lex.Digits, lex.Letters, "-_.:/"),
	"digit":   lex.DigitSet,
	"upper":   lex.SetOf(lex.Digits, lex.Uppers),
	"alnum":   lex.AlnumSet,
	"word":    lex.WordSet,
	"dotted":  lex.SetOf(lex.Digits, lex.Letters, "_-.=~"),
	"arn":     lex.SetOf(lex.Digits, lex.Letters, "+/=_-.:?&%@$*{}"),
	"crypt":   lex.SetOf(lex.Digits, lex.Letters, "./$=+,-"),
	"base64":  lex.Base64Set,
	"path":    lex.SetOf(lex.Digits, lex.Letters, "+/=_-.:?&%@$"),
}
