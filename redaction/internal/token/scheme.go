package token

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// bearer masks the token behind the name of a scheme of tokens, s[begin:end].
func bearer(c *scan, begin, end int) {
	c.scheme("bearer-token", begin, end, func(text string) bool {
		return (judge.IsRandom(text) || judge.IsVeryRandom(text)) && !judge.IsSource(text) && !judge.IsPath(text) && !judge.IsCommonWords(text, 1)
	})
}

// basic masks the user and password in base64 behind the name of a scheme.
func basic(c *scan, begin, end int) {
	c.scheme("basic-credentials", begin, end, func(text string) bool {
		return judge.IsEncodedPair(text) || len(text) >= 20 && judge.IsVeryRandom(text)
	})
}

// login masks the user or password in base64 of SMTP's AUTH LOGIN: behind the words on the line, or on
// the line below the server's question.
func login(c *scan, _, end int) {
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

var (
	bearerSet = lex.SetOf(lex.Digits, lex.Letters, "_-.~+/=|:!")
	schemeGap = lex.SetOf(" \t:")
)
