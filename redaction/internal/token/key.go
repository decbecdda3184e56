package token

import (
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// This file masks private keys in PEM, PGP and PuTTY files, also cut off, quoted,
// escaped, commented, joined or logged. A key is read as pieces of base64, usually one
// per line.

const (
	maxKey     = 64 << 10 // a block of key material; the largest RSA keys have 13 kB
	maxKeyLine = 512      // a line of a key with what stands around it
)

// pem masks the key with the BEGIN or END line of the trigger. A hunk may show only
// one of the two.
func pem(c *scan, begin, end int) {
	labelEnd := lex.Run(c.s, end, &labelSet, 80)
	label := strings.NewReplacer("%20", " ", "+", " ").Replace(c.s[end:labelEnd])
	if !strings.Contains(strings.ToUpper(label), "PRIVATE") {
		return
	}
	if !strings.EqualFold(c.s[end-len("END"):end], "END") {
		c.key("key block", lex.Run(c.s, labelEnd, &dashSet, 8))
		return
	}
	// The key begins in the lines above, down to what was read, as long as they have long pieces.
	least := max(c.keyEnd, begin-maxKey)
	at := max(least, lex.LineBegin(c.s, max(0, lex.LineBegin(c.s, begin)-1)))
	for at > least {
		above := max(least, lex.LineBegin(c.s, at-1))
		if !longRun.MatchString(c.s[above:at]) {
			break
		}
		at = above
	}
	c.key("key block", at)
	c.keyEnd = max(c.keyEnd, begin)
}

// longRun matches a piece of a key that is not the last one.
var longRun = regexp.MustCompile(`[0-9A-Za-z+/=]{16}`)

// putty masks the private lines of a PuTTY key file, whose number begins at i.
func putty(c *scan, _, i int) {
	c.key("putty key", lex.LineEndWithin(c.s, i, 64))
}

// key masks the key that begins after i.
func (c *scan) key(rule string, i int) {
	if i < c.keyEnd {
		return
	}
	c.keyEnd = i
	for _, p := range keyPieces(c.s, i) {
		// Short text before END may be anything, such as a line number, and a detection
		// without context blocks a request.
		if !c.contextFree || p.end-p.start >= 16 {
			c.report("private-key", rule, "", p.start, p.end)
		}
		c.keyEnd = p.end
	}
}

// A piece is a run of base64 in a key.
type piece struct{ start, end int }

// keyPieces returns the pieces of the key that begins after i. Between two pieces are
// marks, or each piece is on a line with something else before it: the time of a log, a
// number, a command that writes it.
func keyPieces(s string, i int) (pieces []piece) {
	s = s[:min(len(s), i+maxKey)]
	width, line, found := 0, i, true // found is set if the line is one of a key
	glued := true                    // only marks are before s[at] in its line, or behind the piece before
	for at, last := i, i; at < len(s) && at-last < maxKeyLine; {
		switch c := s[at]; {
		case c == '\n':
			text := s[line:at]
			if !found && strings.TrimSpace(text) != "" && !lex.ContainsAny(text, judge.Heads("keyheader")) {
				return pieces
			}
			line, found, glued = at+1, false, true
			at++
		case c == 1, c == '-' && strings.HasPrefix(s[at:], "-----"):
			return pieces
		case lex.KeySet.Has(c):
			p := piece{start: at, end: lex.Run(s, at, &lex.KeySet, maxKey)}
			n := p.end - p.start
			at = p.end
			if !isPiece(s, p, glued, width) {
				glued = glued && strings.Trim(s[p.start:p.end], "+/") == ""
				continue
			}
			p.end = lex.SkipWord(s, p.end, "...") // cut short by its author
			pieces = append(pieces, p)
			if n < width && width >= 40 {
				return pieces // only the last line is short
			}
			width, last, found, glued = max(width, n), at, true, true
		case c == '\\':
			at += 2
		default:
			glued = glued && glueSet.Has(c)
			at++
		}
	}
	return pieces
}

// isPiece reports whether the base64 p is a piece of a key, whose pieces before have up to
// width bytes. A short one is the last one and has to look like it.
func isPiece(s string, p piece, glued bool, width int) bool {
	text, n := s[p.start:p.end], p.end-p.start
	switch {
	case strings.Contains(strings.Trim(text, "="), "=") || strings.Count(text, "/") >= 3 && text[0] != '/' && judge.IsWordy(text): // a path, an assignment
		return false
	case n >= 40:
		return glued || judge.IsMixedCase(text)
	case strings.IndexByte("(.:_", lex.ByteAt(s, p.end)) >= 0:
		return false
	case n >= 4 && lex.Distinct(text) > 1 && endsKey(s, p):
		return true
	case !glued:
		return false
	case width < 40:
		return n == width && n >= 8 || n >= 12 && judge.IsMixedCase(text) || strings.HasPrefix(text, "MI") // a key in short lines
	}
	return n >= 16 || judge.IsRandom(text)
}

// endsKey reports whether p is the last piece: the END line follows, behind a line end, which
// may be escaped, or padding.
func endsKey(s string, p piece) bool {
	rest, next := skipGlue(s, p.end), lex.LineEndWithin(s, p.end, maxGap)
	padded := s[p.end-1] == '='
	if strings.HasPrefix(s[rest:], "-----") {
		return padded || strings.ContainsAny(s[p.end:rest], "\n\\")
	}
	return (padded || rest >= next) && strings.Contains(s[next:lex.LineEndWithin(s, next, maxKeyLine)], "-----END")
}

// skipGlue skips the text between two pieces of a key: line ends, also escaped, quotes,
// operators, comment marks.
func skipGlue(s string, i int) int {
	for limit := min(len(s), i+400); i < limit && (s[i] == '\\' || glueSet.Has(s[i]) || s[i] == '+' || s[i] == '/'); i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return min(i, len(s))
}

// keyBodies masks the lines of base64 that a hunk begins with: the middle of a
// block whose BEGIN line is not shown. A block with a public end is left.
func (c *scan) keyBodies(sections []int) {
	for _, at := range sections {
		for lex.ContainsAny(c.s[at:lex.LineEndWithin(c.s, at, maxKeyLine)], judge.Heads("keyheader")) {
			at = lex.LineEndWithin(c.s, at, maxKeyLine)
		}
		first := skipGlue(c.s, at)
		width := lex.Run(c.s, first, &lex.KeySet, maxKeyLine) - first
		if width < 40 || !judge.IsMixedCase(c.s[first:first+width]) {
			continue
		}
		pieces := keyPieces(c.s, at)
		if len(pieces) < 2 {
			continue
		}
		final := pieces[len(pieces)-1].end
		if lex.ContainsAny(c.s[final:min(len(c.s), final+80)], judge.Heads("publicend")) {
			continue
		}
		for _, p := range pieces {
			c.report("private-key", "key body", "", p.start, p.end)
		}
	}
}

const maxDocument = 8 << 10 // a JSON web key, on either side of its kty

// keyMember matches a value of base64 and the name of its field or element.
var keyMember = regexp.MustCompile("([0-9A-Za-z]+)[\\s\"'`]*[:=>][\\s\"'`:=<>]*([0-9A-Za-z+/=_-]{16,})")

// keyMembers masks the base64 behind the names of private members of a JSON web key, whose
// kty is s[begin:end], or of an RSAKeyValue in XML.
func keyMembers(c *scan, begin, end int) {
	if begin < c.documentEnd || c.s[begin] != '<' && (lex.IsAlnum(lex.ByteAt(c.s, begin-1)) || lex.IsAlnum(lex.ByteAt(c.s, end))) {
		return
	}
	at := max(c.documentEnd, begin-maxDocument)
	at += strings.LastIndexAny(c.s[at:begin], "{\x01") + 1
	stop := min(len(c.s), end+maxDocument)
	if i := strings.IndexAny(c.s[end:stop], "}\x01"); i >= 0 {
		stop = end + i
	}
	for _, m := range keyMember.FindAllStringSubmatchIndex(c.s[at:stop], -1) {
		if judge.Words("keymember")[c.s[at+m[2]:at+m[3]]] && lex.ByteAt(c.s, at+m[5]) != '(' { // not a call
			c.report("private-key", "member of a key", "", at+m[4], at+m[5])
		}
	}
	c.documentEnd = stop
}

var (
	dashSet  = lex.SetOf("-")
	glueSet  = lex.SetOf(" \t\r\n\"'`,;#*>|&.()")
	labelSet = lex.SetOf("-\n").Complement()
)
