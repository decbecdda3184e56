package redaction

import "strings"

// A charset is a set of bytes.
type charset [4]uint64

func (s *charset) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *charset) add(c byte) { s[c>>6] |= 1 << (c & 63) }

func setOf(parts ...string) charset {
	var s charset
	for _, p := range parts {
		for i := range len(p) {
			s.add(p[i])
		}
	}
	return s
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
	notBlank  = func() (s charset) {
		for c := range 256 {
			if !spaceSet.has(byte(c)) {
				s.add(byte(c))
			}
		}
		return s
	}()
)

// Sets of bytes of values.
var (
	actionSet     = setOf(lowers, "/")
	azureSet      = setOf(digits, letters, "_~.-")
	bearerSet     = setOf(digits, letters, "_-.~+/=|:!")
	classSet      = setOf(lowers, digits, "-")
	decimalSet    = setOf(digits, ".")
	dottedSet     = setOf(digits, lowers, "._-")
	hdlSet        = setOf(hexes, "_")
	hexNumSet     = setOf(hexes, "xX")
	hostSet       = setOf(digits, letters, ".-")
	ipSet         = setOf(hexes, ".:")
	jwtSet        = setOf(digits, letters, "_-.+/=")
	mailHost      = setOf(digits, letters, "-_.@")
	mailSet       = setOf(digits, letters, "._%+-")
	numberSet     = setOf(hexes, ".xX_")
	passwordMarks = setOf("!@#$%^&*?~+=")
	phraseSet     = setOf(lowers, " -")
	registrySet   = setOf(hexes, ", \\\r\n")
	resourceSet   = setOf(lowers, "-")
	runSet        = setOf(digits, letters, "_-+/=.:!")
	shadowSet     = setOf(digits, ":") // ends a line of /etc/shadow
	urlSet        = setOf(digits, letters, "-_.:/")
	userinfoSet   = setOf(digits, letters, "_-.:!#$%&*+^~?")
)

// Sets of bytes of names, and of what stands between names, values and operators.
var (
	argumentGap  = setOf(" \t,")
	backslash    = setOf("\\")
	bareStops    = setOf(" \t\r\n\"'`;,&<>(){}[]|")
	calleeSet    = setOf(digits, letters, "_.:[]<>")
	castSet      = setOf("-(byte)")
	colorSet     = setOf(digits, ";")
	columnSet    = setOf(digits, letters, "_-. ")
	dashSet      = setOf("-")
	elementStops = setOf("<\r\n")
	fieldGap     = setOf(" \t\"'")
	fieldSet     = setOf(digits, letters, " _")
	flagGap      = setOf(" \t=")
	flagStops    = setOf(" \t\r\n\"'`;|)")
	joinStart    = setOf(" \t\r\n+.&\\|")
	keyMargin    = setOf(keyMargins)
	keyNameSet   = setOf(digits, letters, "_-.\"'/ ?")
	kindGap      = setOf("\"': ")
	leadsKey     = setOf(" \t\r\n\"'`#*>|")
	listGap      = setOf(", \t\r\n")
	listMark     = setOf(" \t-\"'")
	namespace    = setOf(digits, letters, "_-:")
	pairSet      = setOf(":=>")
	schemeGap    = setOf(" \t:")
	schemeSet    = setOf(digits, letters, "+.-")
	settingGap   = setOf(" =")
	spaceOnly    = setOf(" ")
	suffixSet    = setOf("uUlL")
	tagSet       = setOf(digits, letters, "_-/:")
	trailsKey    = setOf(" \t\r\n\"'`,;\\")
	typeSet      = setOf(digits, letters, "_.<>[]?*|")
	uriStops     = setOf(" \t\r\n\"'`<>|\\")
)

// keyMargins is what may stand before a line of a key.
const keyMargins = " \t\"'`#*>|/"

// charsets are the charsets of tokens.txt.
var charsets = map[string]charset{
	"hex":    hexSet,
	"digit":  digitSet,
	"upper":  setOf(digits, uppers),
	"alnum":  alnumSet,
	"word":   wordSet,
	"dotted": setOf(digits, letters, "_-.=~"),
	"arn":    setOf(digits, letters, "+/=_-.:?&%@$*{}"),
	"crypt":  setOf(digits, letters, "./$=+,-"),
	"base64": base64Set,
	"path":   setOf(digits, letters, "+/=_-.:?&%@$"),
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
	var seen charset
	n := 0
	for i := range len(s) {
		if !seen.has(s[i]) {
			seen.add(s[i])
			n++
		}
	}
	return n
}

// lastByte returns the last byte of s, or 0.
func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
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

// endsFold reports whether s ends in word, in any case.
func endsFold(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[len(s)-len(word):], word)
}

// continuesWord reports whether the run that ended at i goes on as a longer word.
func continuesWord(s string, i int) bool { return i < len(s) && isAlnum(s[i]) }

// followsAlnum reports whether the byte before i is of the same word. The letter
// of an escape such as \n is not.
func followsAlnum(s string, i int) bool {
	if i == 0 || !isAlnum(s[i-1]) {
		return false
	}
	return i < 2 || s[i-2] != '\\'
}
