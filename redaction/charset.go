package redaction

import (
	"math/bits"
	"slices"
	"strings"
)

// A charset is a set of bytes.
type charset [4]uint64

func (s *charset) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *charset) add(c byte) { s[c>>6] |= 1 << (c & 63) }

func setOf(parts ...string) charset { return charset{}.with(parts...) }

func (s charset) with(parts ...string) charset {
	for _, p := range parts {
		for i := range len(p) {
			s.add(p[i])
		}
	}
	return s
}

func (s charset) complement() charset { return charset{^s[0], ^s[1], ^s[2], ^s[3]} }

// table returns a table that is 1 for the bytes of s.
func (s charset) table() (t [256]uint8) {
	for c := range t {
		if s.has(byte(c)) {
			t[c] = 1
		}
	}
	return t
}

// firstIn returns the offset of the first byte of s from i on for which the table is
// 1, or len(s). It reads eight bytes at a time.
func firstIn(s string, i int, table *[256]uint8) int {
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		if table[t[0]]|table[t[1]]|table[t[2]]|table[t[3]]|table[t[4]]|table[t[5]]|table[t[6]]|table[t[7]] != 0 {
			break
		}
	}
	for i < len(s) && table[s[i]] == 0 {
		i++
	}
	return i
}

const (
	digits  = "0123456789"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = lowers + uppers
	hexes   = digits + "abcdefABCDEF"
)

// Sets of general use.
var (
	digitSet  = setOf(digits)
	lowerSet  = setOf(lowers)
	letterSet = setOf(letters)
	vowelSet  = setOf("aeiouyAEIOUY")
	alnumSet  = setOf(digits, letters)
	codeIdent = setOf(digits, letters, "_")     // an identifier of a programming language
	wordSet   = setOf(digits, letters, "_-")    // also base64url
	identSet  = setOf(digits, letters, "_-.$")  // a name, possibly with members
	base64Set = setOf(digits, letters, "+/=_-") // both alphabets, padded
	plain64   = setOf(digits, letters, "+/")    // the standard alphabet
	keySet    = setOf(digits, letters, "+/=")   // the same, padded
	base32Set = setOf(uppers, "234567")
	hexSet    = setOf(hexes)
	upperHex  = setOf(digits, "ABCDEF")
	lowerHex  = setOf(digits, "abcdef")
	blankSet  = setOf(" \t")
	spaceSet  = setOf(" \t\r\n")
	quoteSet  = setOf("\"'`")
	closerSet = setOf("\"'`\\])*?!") // what skipClosers may skip
	notBlank  = spaceSet.complement()
)

// Sets of bytes of values.
var (
	actionSet     = setOf(lowers, "/")
	bearerSet     = setOf(digits, letters, "_-.~+/=|:!")
	cellMargin    = setOf(" |")
	classSet      = setOf(lowers, digits, "-")
	decimalSet    = setOf(digits, ".")
	dottedSet     = setOf(digits, lowers, "._-")
	hostSet       = setOf(digits, letters, ".-")
	ipSet         = setOf(hexes, ".:")
	mailSet       = setOf(digits, letters, "._%+-")
	numberSet     = setOf(hexes, ".xX_uUlL")
	passwordMarks = setOf("!@#$%^&*?~+=")
	pgHostSet     = setOf(digits, letters, ".-*")
	resourceSet   = setOf(lowers, "-")
	runSet        = setOf(digits, letters, "_-+/=.:!")
	shadowSet     = setOf(digits, ":") // ends a line of /etc/shadow
	userinfoSet   = setOf(digits, letters, "_-.:!#$%&*+^~?")
)

// Sets of bytes of names, and of the text between names, values and operators.
var (
	backslash     = setOf("\\")
	bareStops     = setOf(" \t\r\n\"'`;,&<>(){}[]|")
	blockMarks    = setOf("|>-")
	calleeSet     = setOf(digits, letters, "_.:[]<>")
	colorSet      = setOf(digits, ";")
	columnSet     = setOf(digits, letters, "_-. ")
	dashSet       = setOf("-")
	elementStops  = setOf("<\r\n")
	fieldGap      = setOf(" \t\r\n\"'`:=<>")
	flagSet       = setOf(" \t\r\n\"'`;|)").complement()
	glueSet       = setOf(" \t\r\n\"'`,;#*>|&.()")
	joinStart     = setOf(" \t\r\n+.&\\|")
	keyNameSet    = setOf(digits, letters, "_-.\"'/ ?,{\t\r\n")
	kindGap       = setOf("\"': ")
	labelSet      = setOf("-\n").complement()
	lineEnders    = setOf("\x00\n\r\\-#&}\"'`") // end a value of configuration but no name of code
	listGap       = setOf(", \t\r\n")
	literalPrefix = setOf("bruflnxBRUFLNX@$[{(&*#")
	schemeGap     = setOf(" \t:")
	schemeSet     = setOf(digits, letters, "+.-")
	sigilSet      = setOf("$@&*#")
	typeSet       = setOf(digits, letters, "_.<>[]?*|")
	uriSet        = setOf(" \t\r\n\"'`<>|\\").complement()
	wordGap       = setOf(" \t,=[]")
)

// charsets are the charsets of token rules.
var charsets = map[string]charset{
	"azure":   setOf(digits, letters, "_~.-"),
	"base32":  base32Set,
	"bech32":  setOf("qpzry9x8gf2tvdw0s3jn54khce6mua7l"),
	"caps":    setOf(uppers),
	"discord": setOf("MNO"),
	"hex":     hexSet,
	"lalnum":  setOf(digits, lowers),
	"lhex":    lowerHex,
	"jwt":     setOf(digits, letters, "_-.+/="),
	"mail":    setOf(digits, letters, "-_.@"),
	"nkind":   setOf("ACNOUXPD"),
	"url":     setOf(digits, letters, "-_.:/"),
	"digit":   digitSet,
	"upper":   setOf(digits, uppers),
	"alnum":   alnumSet,
	"word":    wordSet,
	"dotted":  setOf(digits, letters, "_-.=~"),
	"arn":     setOf(digits, letters, "+/=_-.:?&%@$*{}"),
	"crypt":   setOf(digits, letters, "./$=+,-"),
	"base64":  base64Set,
	"path":    setOf(digits, letters, "+/=_-.:?&%@$"),
}

func isAlnum(c byte) bool { return alnumSet.has(c) }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// run returns the end of the run of set that begins at i, at most limit bytes after i.
func run(s string, i int, set *charset, limit int) int {
	end := min(len(s), i+limit)
	for i < end && set.has(s[i]) {
		i++
	}
	return i
}

// runBack returns the begin of the run of set that ends at i, at most limit bytes before i.
func runBack(s string, i int, set *charset, limit int) int {
	begin := max(0, i-limit)
	for i > begin && set.has(s[i-1]) {
		i--
	}
	return i
}

// skipBlanks skips up to maxGap blanks.
func skipBlanks(s string, i int) int { return run(s, i, &blankSet, maxGap) }

func countIn(s string, set *charset) int {
	n := 0
	for i := range len(s) {
		if set.has(s[i]) {
			n++
		}
	}
	return n
}

func allIn(s string, set *charset) bool { return run(s, 0, set, len(s)) == len(s) }

// distinct returns how many different bytes s has.
func distinct(s string) int {
	seen := setOf(s)
	return bits.OnesCount64(seen[0]) + bits.OnesCount64(seen[1]) + bits.OnesCount64(seen[2]) + bits.OnesCount64(seen[3])
}

// byteAt returns s[i], or 0 outside of s.
func byteAt(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// lastByte returns the last byte of s, or 0.
func lastByte(s string) byte { return byteAt(s, len(s)-1) }

// beginsWith reports whether s begins with one of heads.
func beginsWith(s string, heads []string) bool {
	for _, head := range heads {
		if strings.HasPrefix(s, head) {
			return true
		}
	}
	return false
}

// skipWord returns the end of the first of words that s has at i, or i.
func skipWord(s string, i int, words ...string) int {
	for _, w := range words {
		if strings.HasPrefix(s[i:], w) {
			return i + len(w)
		}
	}
	return i
}

// endsWith reports whether s ends in one of tails.
func endsWith(s string, tails []string) bool {
	return slices.ContainsFunc(tails, func(tail string) bool { return strings.HasSuffix(s, tail) })
}

// containsAny reports whether s contains one of parts.
func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// continuesWord reports whether the run that ended at i is part of a longer word.
func continuesWord(s string, i int) bool { return i < len(s) && isAlnum(s[i]) }

// followsAlnum reports whether a letter or digit that is no escape, such as \n, is before i.
func followsAlnum(s string, i int) bool {
	if i == 0 || !isAlnum(s[i-1]) {
		return false
	}
	return i < 2 || s[i-2] != '\\'
}
