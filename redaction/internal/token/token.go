// Package token finds secrets that need no context: tokens of a known format by their prefix,
// length and checksum, private keys, user and password of URIs, credentials behind the name of an
// authorization scheme, and generic random tokens. It reads the raw text and does not depend on the language.
//
// [Rules.Scan] is the spine. token.go has the rules of tokens.rules, run.go what has no
// prefix, checksum.go the checksums, uri.go URIs and lines of password files, key.go private keys.
package token

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// Rules are the token rules and what the policy masks.
type Rules struct {
	Names  *judge.Names
	tokens []rule
	// runs are the rules without an anchor.
	runs []*rule
	all  *lex.Words
}

// A Policy masks what is not a secret by itself (security 9.5.2).
type Policy struct {
	Emails, InternalIPs bool
	HostSuffixes        []string
}

// A reader looks for secrets at the word s[begin:end]. index is the number of the rule.
type reader func(c *scan, index, begin, end int)

// readers are what the words are for, by [lex.Word].Kind.
var readers = []struct {
	read reader
	// contextFree readers find what a request must never hold.
	contextFree bool
	words       []string
}{
	{(*scan).placeholder, true, []string{judge.PlaceholderHead}},
	{(*scan).token, true, nil},
	{(*scan).token, false, nil},
	{uri, true, []string{"://"}},
	{pem, true, []string{"-----begin", "---- begin", "----begin", "----end"}},
	{putty, false, []string{"private-lines:"}},
	{keyMembers, false, []string{"kty", "<rsakeyvalue>"}},
	{userinfo, false, []string{"@"}},
	{dsn, false, []string{"@tcp(", "@unix(", "@udp("}},
	{oracle, false, []string{"jdbc:oracle:thin:", "jdbc:oracle:oci:", "sqlplus ", "connect ", "conn ", "userid="}},
	{pgpass, false, []string{":5432:", ":5433:", ":5434:", ":6432:", ":*:"}},
	{bearer, false, []string{"bearer", "ssws"}},
	{basic, false, []string{"basic", "auth plain"}},
	{login, false, []string{"auth login", "334 ugfzc3dvcmq6", "334 cgfzc3dvcmq6", "334 vxnlcm5hbwu6"}},
	{email, false, nil},
	{internalIP, false, nil},
	{host, false, nil},
}

// The kinds of words that are not the same in every policy: indexes of readers.
const (
	kindToken, kindWeakToken            = 1, 2
	kindEmail, kindInternalIP, kindHost = 14, 15, 16
)

// Index has to be called after the last rule was added.
func (r *Rules) Index(p Policy) {
	var words []lex.Word
	add := func(kind, index int, texts ...string) {
		for _, w := range texts {
			words = append(words, lex.Word{Text: strings.ToLower(w), Kind: uint8(kind), Index: index}) //nolint:gosec // an index of readers
		}
	}
	for kind := range readers {
		add(kind, 0, readers[kind].words...)
	}
	for i := range r.tokens {
		switch t := &r.tokens[i]; {
		case t.anchor < 0:
			r.runs = append(r.runs, t)
		case t.contextFree():
			add(kindToken, i, t.anchorText())
		default:
			add(kindWeakToken, i, t.anchorText())
		}
	}
	if p.Emails {
		add(kindEmail, 0, "@")
	}
	if p.InternalIPs {
		add(kindInternalIP, 0, privateNets...)
	}
	add(kindHost, 0, p.HostSuffixes...)
	r.all = lex.NewWords(words)
}

// Drop removes the rules that off reports. It has to be called before [Rules.Index].
func (r *Rules) Drop(off func(rule string) bool) {
	r.tokens = slices.DeleteFunc(r.tokens, func(t rule) bool { return off(t.name) })
}

// Scan returns the secrets of s, in any order, and what a rule matched and a predicate left.
// sections are where hunks begin in s: lines of the file are missing before each.
func (r *Rules) Scan(s string, sections []int) (found, left []judge.Span) {
	c := &scan{Rules: r, s: s, runEnds: make([]int, len(r.tokens))}
	r.all.Each(s, func(w *lex.Word, begin, end int) {
		if begin >= c.placeholderEnd {
			readers[w.Kind].read(c, w.Index, begin, end)
		}
	})
	c.keyBodies(sections)
	c.longRuns()
	return c.found, c.left
}

// ContextFree returns the rule that finds something in s that a request must never hold, or "".
func (r *Rules) ContextFree(s string) string {
	c := &scan{Rules: r, s: s, contextFree: true, runEnds: make([]int, len(r.tokens))}
	r.all.Each(s, func(w *lex.Word, begin, end int) {
		if reader := readers[w.Kind]; reader.contextFree && begin >= c.placeholderEnd && len(c.found) == 0 {
			reader.read(c, w.Index, begin, end)
		}
	})
	if len(c.found) > 0 {
		return c.found[0].Rule
	}
	return ""
}

// A scan is the state of one pass over a text.
type scan struct {
	*Rules
	s           string
	contextFree bool
	found, left []judge.Span
	// The ends of the last placeholder, key, URI, document and credentials that were read.
	placeholderEnd, keyEnd, uriEnd, documentEnd, schemeEnd int
	// runEnds are the ends of the last runs of the rules: a token that begins in one is not read again.
	runEnds []int
}

// report records s[start:end] as a secret.
func (c *scan) report(class, rule, why string, start, end int) {
	if start < end {
		c.found = append(c.found, judge.Span{Start: start, End: end, Reason: judge.Reason{Class: class, Rule: rule, Why: why}})
	}
}

// placeholder skips the placeholder at begin.
func (c *scan) placeholder(_, begin, _ int) {
	if n := c.Names.PlaceholderLen(c.s[begin:]); n > 0 {
		c.placeholderEnd = begin + n
	}
}

// A rule is a format of tokens, which are recognized by their shape alone.
type rule struct {
	name, class string
	parts       []part
	// anchor is the index of the literal that triggers the rule, or -1: then the
	// rule is tried on every long run of token bytes.
	anchor int
	// free tokens may follow a letter or digit: the literal is specific enough.
	free bool
	// If random is set, the variable part has to look random, because other text
	// has the shape too.
	random bool
	// check is what a token has to fulfil, or nil.
	check func(token string) bool
}

// A part is a literal, or a run of least to most bytes of a set.
type part struct {
	literal     string
	set         *lex.Set
	least, most int
}

// Add reads "token CLASS SHAPE [check=NAME] EXAMPLE".
func (r *Rules) Add(f []string) (subjects []judge.Subject, err error) {
	t, check := rule{}, ""
	if len(f) > 2 && strings.HasPrefix(f[2], "check=") {
		known := false
		check = strings.TrimPrefix(f[2], "check=")
		if t.check, known = checks[check]; !known {
			return nil, fmt.Errorf("the checksum %q is unknown", check)
		}
		f = append(f[:2:2], f[3:]...)
	}
	if len(f) != 3 || !judge.ValidClass(f[0]) {
		return nil, errors.New("want \"token CLASS SHAPE [check=NAME] EXAMPLE\": a class of lower-case lex.Letters, lex.Digits and -, a shape such as corp_{alnum:20+}, a token of that shape")
	}
	if t.parts, err = parseShape(f[1]); err != nil {
		return nil, err
	}
	t.class, t.name = f[0], "token "+f[1]
	r.Names.Classes[t.class] = true
	t.anchor = -1
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
	t.random = check == "random" || check != "none" && t.anchor == 0 && least < 40 && len(t.anchorText()) < 4
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
	token, why := c.s[first:last], "format"
	if t.check != nil {
		why = "checksum or content"
	}
	if t.check != nil && !t.check(token) || t.check == nil && !t.takes(token, c.s[begin+len(t.anchorText()):last]) {
		c.left = append(c.left, judge.Span{Start: first, End: last, Reason: judge.Reason{Rule: t.name, Why: "not random"}})
		return
	}
	before := strings.TrimRight(c.s[max(0, first-maxGap):first], " \t\r\n\"'`+\\n")
	if t.class == "private-key" && strings.HasSuffix(before, "-----") {
		return // the label of the block decides
	}
	if c.report(t.class, t.name, why, first, last); t.class == "aws-key" {
		c.awsSecretAfter(last)
	}
}

// takes reports whether text of the shape is a token. body is what is
// behind the anchor.
func (t *rule) takes(token, body string) bool {
	const few = 6 // different bytes that a placeholder such as ACaaaaaa has, at most
	switch {
	case t.anchor < 0:
		return lex.Distinct(token) > few
	case t.anchor > 0 && t.parts[0].least > few:
		return lex.Distinct(token[:t.parts[0].least]) > few/2
	case t.random:
		return (judge.IsRandom(body) || judge.IsGibberish(body)) && !lex.AllIn(body, &decimalSet)
	}
	return true
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
	first, last, ok = i, i, true
	for k := t.anchor - 1; ok && k >= 0; k-- {
		first, ok = t.parts[k].before(s, first)
	}
	if p := t.parts[0].set; !ok || t.anchor > 0 && p != nil && first > 0 && p.Has(s[first-1]) && lex.IsAlnum(s[first]) && lex.IsAlnum(s[first-1]) {
		return first, i, false // no match, or a longer run
	}
	begin := i // of the last part
	for k := max(0, t.anchor); ok && k < len(t.parts); k++ {
		begin = last
		if p := &t.parts[k]; k != t.anchor+1 || k < len(t.parts)-1 || p.set == nil || begin >= *runEnd {
			last, ok = p.after(s, begin)
		} else { // s[begin:*runEnd] is in the set
			known := min(*runEnd, begin+p.most)
			last = lex.Run(s, known, p.set, begin+p.most-known)
			ok = last-begin >= p.least
		}
	}
	if ok && t.anchor == len(t.parts)-2 {
		*runEnd = last
	}
	if p := &t.parts[len(t.parts)-1]; p.set == nil {
		return first, last, ok && !lex.ContinuesWord(s, last)
	} else if ok {
		last, ok = t.ends(s, p, begin, last)
	}
	return first, last, ok
}

// after returns the end of the part that begins at i, and whether there is one.
func (p *part) after(s string, i int) (end int, ok bool) {
	if p.set == nil {
		return i + len(p.literal), strings.HasPrefix(s[i:], p.literal)
	}
	end = lex.Run(s, i, p.set, p.most)
	return end, end-i >= p.least
}

// before returns the begin of the part that ends at i, and whether there is one.
func (p *part) before(s string, i int) (begin int, ok bool) {
	if p.set == nil {
		return i - len(p.literal), strings.HasSuffix(s[:i], p.literal)
	}
	begin = lex.RunBack(s, i, p.set, p.most)
	return begin, i-begin >= p.least
}

// ends reports whether the last part p, s[at:last], ends as a token does, and where:
// before the marks of the text around the token.
func (t *rule) ends(s string, p *part, at, last int) (end int, ok bool) {
	end = at + len(strings.TrimRight(s[at:last], ".,:?&"))
	goesOn := p.most < maxToken && last < len(s) && p.set.Has(s[last]) // longer than the format allows
	if !goesOn && !t.free && strings.IndexByte("+/=", lex.ByteAt(s, end-1)) < 0 {
		goesOn = lex.ContinuesWord(s, end)
	}
	return end, !goesOn && end-at >= p.least
}

// awsSecretAfter masks the secret shortly after the id of a key: 40 bytes of base64.
func (c *scan) awsSecretAfter(at int) {
	limit := min(len(c.s), at+60)
	for at < limit {
		begin := at
		for begin < limit && !lex.Plain64.Has(c.s[begin]) {
			begin++
		}
		at = lex.Run(c.s, begin, &lex.Plain64, maxToken)
		if at-begin > 40 && c.s[at-41] == '/' && !judge.IsWordy(c.s[at-40:at]) {
			begin = at - 40 // below a path
		}
		if at-begin == 40 && judge.IsMixedCase(c.s[begin:at]) {
			c.report("aws-key", "secret after key id", "", begin, at)
			return
		}
	}
}

// bearer masks the token behind the name of a scheme of tokens, s[begin:end].
func bearer(c *scan, _, begin, end int) {
	c.scheme("bearer-token", begin, end, func(text string) bool {
		return (judge.IsRandom(text) || judge.IsVeryRandom(text)) && !judge.IsSource(text) && !judge.IsPath(text) && !judge.IsCommonWords(text, 1)
	})
}

// basic masks the user and password in base64 behind the name of a scheme.
func basic(c *scan, _, begin, end int) {
	c.scheme("basic-credentials", begin, end, func(text string) bool {
		return judge.IsEncodedPair(text) || len(text) >= 20 && judge.IsVeryRandom(text)
	})
}

// login masks the user or password in base64 of SMTP's AUTH LOGIN: behind the words on the line, or on
// the line below the server's question.
func login(c *scan, _, _, end int) {
	const long = 128
	stop := lex.LineEndWithin(c.s, end, long)
	if c.s[end-1] == '6' { // an answer
		end, stop = stop, lex.LineEndWithin(c.s, stop, long)
	}
	for at := end; at < stop; at++ {
		next := lex.Run(c.s, at, &lex.KeySet, stop-at)
		if text := c.s[at:next]; len(text) >= 4 && len(text)%4 == 0 && !judge.IsCommonWords(text, 0) {
			c.report("basic-credentials", "login of SMTP", "", at, next)
		}
		at = next
	}
}

// scheme masks the credentials after the word s[begin:end] of a scheme. In a header,
// any text that is not a reference is a credential; elsewhere the word may be prose.
func (c *scan) scheme(class string, begin, end int, looksLike func(text string) bool) {
	at := lex.Run(c.s, end, &schemeGap, 8)
	if at == end || begin < c.schemeEnd || lex.IsAlnum(lex.ByteAt(c.s, begin-1)) {
		return
	}
	stop := lex.Run(c.s, at, &bearerSet, maxToken)
	c.schemeEnd = stop
	text := strings.TrimRight(c.s[at:stop], ".,:|")
	const gap = 24
	inHeader := strings.Contains(strings.ToLower(c.s[max(0, begin-gap):begin]), "authorization")
	isWord := judge.Words("schemeword")[strings.ToLower(text)] || text == strings.ToUpper(text) && judge.IsCommonWords(text, 0)
	if len(text) >= 4 && (looksLike(text) || inHeader && !judge.IsReference(text) && !judge.IsSource(text) && !isWord) {
		c.report(class, "authorization", "", at, at+len(text))
	}
}

const (
	maxGap      = 80      // blanks and quotes before a token
	maxKeyWidth = 76      // a line of a key in PEM
	maxToken    = 8 << 10 // a token; the longest known ones have a few thousand bytes
)

var (
	bearerSet  = lex.SetOf(lex.Digits, lex.Letters, "_-.~+/=|:!")
	decimalSet = lex.SetOf(lex.Digits, ".")
	schemeGap  = lex.SetOf(" \t:")
)

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
