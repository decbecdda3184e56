package redaction

import "strings"

// A charset is a set of ASCII bytes.
type charset [4]uint64

func (s *charset) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func setOf(parts ...string) charset {
	var s charset
	for _, p := range parts {
		for i := range len(p) {
			s[p[i]>>6] |= 1 << (p[i] & 63)
		}
	}
	return s
}

const (
	digits  = "0123456789"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = lowers + uppers
)

var (
	alnumSet  = setOf(digits, letters)
	wordSet   = setOf(digits, letters, "_-")
	identSet  = setOf(digits, letters, "_-.$")
	base64Set = setOf(digits, letters, "+/=_-")
	plain64   = setOf(digits, letters, "+/")
	hexSet    = setOf(digits, "abcdefABCDEF")
	blankSet  = setOf(" \t")
	spaceSet  = setOf(" \t\r\n")
	quoteSet  = setOf("\"'`")
	charsets  = map[string]charset{
		"hex":    hexSet,
		"digit":  setOf(digits),
		"upper":  setOf(digits, uppers),
		"alnum":  alnumSet,
		"word":   wordSet,
		"dotted": setOf(digits, letters, "_-.=~"),
		"arn":    setOf(digits, letters, "+/=_-.:?&%@$*{}"),
		"crypt":  setOf(digits, letters, "./$=+,-"),
		"base64": base64Set,
		"path":   setOf(digits, letters, "+/=_-.:?&%@$"),
	}
)

func isAlnum(c byte) bool { return alnumSet.has(c) }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// run returns the end of the run of set that begins at i, at most limit bytes on.
func run(s string, i int, set *charset, limit int) int {
	end := min(len(s), i+limit)
	for i < end && set.has(s[i]) {
		i++
	}
	return i
}

// runBack returns the begin of the run of set that ends at i, at most limit bytes back.
func runBack(s string, i int, set *charset, limit int) int {
	begin := max(0, i-limit)
	for i > begin && set.has(s[i-1]) {
		i--
	}
	return i
}

func countIn(s string, set *charset) int {
	n := 0
	for i := range len(s) {
		if set.has(s[i]) {
			n++
		}
	}
	return n
}

func allIn(s string, set *charset) bool {
	for i := range len(s) {
		if !set.has(s[i]) {
			return false
		}
	}
	return true
}

// beginsWith reports whether s begins with one of heads.
func beginsWith(s string, heads []string) bool {
	for _, head := range heads {
		if strings.HasPrefix(s, head) {
			return true
		}
	}
	return false
}
