package judge

import (
	"crypto/sha256"
	_ "embed"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// heads are the lists of words.txt in their order, lists the same as sets.
var heads, lists = parseLists(wordsFile)

//go:embed words.txt
var wordsFile string

// Digest is the hash of the words.
var Digest = sha256.Sum256([]byte(wordsFile))

// parseLists reads the lists of words.txt by their heading. A ~ is a blank.
func parseLists(data string) (ordered map[string][]string, sets map[string]map[string]bool) {
	ordered, sets = map[string][]string{}, map[string]map[string]bool{}
	var heading string
	for line := range strings.Lines(data) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if f[0][0] == '[' && len(f) == 1 && len(f[0]) > 3 {
			heading = strings.Trim(f[0], "[]")
			sets[heading] = map[string]bool{}
			continue
		}
		for _, w := range f {
			w = strings.ReplaceAll(w, "~", " ")
			ordered[heading] = append(ordered[heading], w)
			sets[heading][w] = true
		}
	}
	return ordered, sets
}

// Heads returns the list of words.txt with the heading, in its order; Words returns it as a set.
func Heads(heading string) []string { return heads[heading] }

// Words returns a list of words.txt as a set.
func Words(heading string) map[string]bool { return lists[heading] }

// follows[a][b] reports whether English words have letter b after letter a.
var follows = func() (t [26][26]bool) {
	for pair := range lists["follow"] {
		t[pair[0]-'a'][pair[1]-'a'] = true
	}
	return t
}()

// oddPairs returns the number of pairs of letters in s, and the share not in English.
func oddPairs(s string) (share float64, pairs int) {
	odd := 0
	for i := 0; i+1 < len(s); i++ {
		a, b := lex.FoldByte(s[i]), lex.FoldByte(s[i+1])
		if !lex.IsLower(a) || !lex.IsLower(b) {
			continue
		}
		pairs++
		if !follows[a-'a'][b-'a'] {
			odd++
		}
	}
	return float64(odd) / float64(max(1, pairs)), pairs
}

// IsGibberish reports whether the letters of s form no words.
func IsGibberish(s string) bool {
	share, pairs := oddPairs(s)
	return pairs >= 7 && share >= 0.2 || pairs >= 4 && share >= 0.3 || share >= 0.5
}

// entropy returns the Shannon entropy of s in bits per byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	h := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			h -= p * math.Log2(p)
		}
	}
	return h
}

// A shape counts the bytes of a value by kind.
type shape struct {
	lower, upper, digit, blank, other, wide int
	// switches counts the places where letters and digits meet.
	switches int
}

func shapeOf(s string) (sh shape) {
	before := byte(0)
	for _, c := range []byte(s) {
		switch {
		case lex.IsLower(c):
			sh.lower++
		case lex.IsUpper(c):
			sh.upper++
		case lex.IsDigit(c):
			sh.digit++
		case c == ' ' || c == '\t':
			sh.blank++
		case c >= utf8.RuneSelf:
			sh.wide++
		default:
			sh.other++
		}
		if lex.IsDigit(c) && lex.LetterSet.Has(before) || lex.IsDigit(before) && lex.LetterSet.Has(c) {
			sh.switches++
		}
		before = c
	}
	return sh
}

func (sh shape) letters() int { return sh.lower + sh.upper }

// IsRandom reports whether s, of 6 bytes or more, looks generated and not written.
func IsRandom(s string) bool {
	s = s[:min(len(s), 512)]
	if len(s) < 6 {
		return false
	}
	sh := shapeOf(s)
	if sh.blank > 0 || sh.wide > 2 || !sh.hasRandomShape(s) {
		return false
	}
	return lex.Distinct(s) >= 5 && !IsWordy(s)
}

// hasRandomShape reports whether s, of this shape, mixes like generated text.
func (sh shape) hasRandomShape(s string) bool {
	switch {
	case sh.digit == 0:
		return IsGibberish(s) || sh.upper > 1 && sh.lower > 1 && sh.other > 1
	case looksLikeVersion(s):
		return false
	case sh.letters() == 0:
		return sh.other == 0 && len(s) >= 10
	}
	return IsGibberish(s) || sh.switches >= 3 || sh.switches > 0 && (len(s) >= 8 && sh.digit >= 3 || sh.upper > 0 && sh.other > 0)
}

// IsVeryRandom reports whether s can hardly be anything but a key: long, of many
// different bytes, letters and digits mixed throughout.
func IsVeryRandom(s string) bool {
	s = s[:min(len(s), 512)]
	sh := shapeOf(s)
	if len(s) < 15 || sh.blank+sh.wide > 0 || sh.digit < 2 || sh.switches < 2 {
		return false
	}
	isHex := lex.AllIn(s, &lex.HexSet) // has 16 different bytes at most
	return (isHex || entropy(s) > 3.2) && (sh.switches >= 4 || !isHex && IsGibberish(s)) &&
		!looksLikeVersion(s) && !IsUUID(s) && !IsWordy(s)
}

// IsKeyLike reports whether s has the form of a key, long and of letters and
// digits, although it may count up like the keys of examples.
func IsKeyLike(s string) bool {
	s = s[:min(len(s), 512)]
	sh := shapeOf(s)
	return len(s) >= 16 && sh.digit >= 3 && sh.letters() >= 3 && sh.other <= len(s)/8 && sh.blank+sh.wide == 0 && lex.Distinct(s) >= 6 && !looksLikeVersion(s) && !IsWordy(s)
}

// IsWordy reports whether s is mostly words, also with digits, or names of algorithms.
func IsWordy(s string) bool {
	all := lex.CountIn(s, &lex.LetterSet)
	inWords, letters, digit := 0, 0, 0
	for w := range wordsOf(s) {
		if (letters-inWords)*5 > all {
			return false // too many letters are in no word
		}
		core := strings.Trim(w, lex.Digits)
		letters += len(core)
		digit += len(w) - len(core)
		if len(core) >= 3 && isPlainWord(core) || isAlgorithm(core) {
			inWords += len(core)
		}
	}
	return letters >= 4 && inWords*5 >= letters*4 && digit*5 <= len(s)*2
}

func isAlgorithm(w string) bool {
	return len(w) <= 7 && lists["algorithm"][strings.ToLower(w)]
}

// isPlainWord reports whether w has the vowels and pairs of letters of English words.
func isPlainWord(w string) bool {
	share, pairs := oddPairs(w)
	vowels := lex.CountIn(w, &lex.VowelSet)
	return pairs == len(w)-1 && share <= 0.15 && vowels*6 >= len(w) && vowels*5 <= len(w)*4
}

// IsHumanMade reports whether s looks like a password that a person made up: letters
// with digits or marks, of 8 to 64 bytes.
func IsHumanMade(s string) bool {
	sh := shapeOf(s)
	if len(s) < 8 || len(s) > 64 || sh.blank+sh.wide > 0 || sh.letters() < 3 || strings.IndexByte("[<{(", s[0]) >= 0 {
		return false
	}
	return sh.digit >= 2 || lex.CountIn(s, &passwordMarks) > 0 && (sh.digit > 0 || sh.upper > 0 && sh.lower > 0)
}

// isKeyLength reports whether n is a usual length of keys and digests.
func isKeyLength(n int) bool { return n == 20 || n == 24 || n == 32 || n == 40 || n >= 43 }

// looksLikeVersion reports whether s is a version, date, time or address.
func looksLikeVersion(s string) bool {
	if dots := strings.SplitN(strings.TrimLeft(s, "v^~>=<"), ".", 3); len(dots) == 3 && len(dots[0]) < 5 && len(dots[1]) < 5 && lex.AllIn(dots[0]+dots[1], &lex.DigitSet) {
		return true
	}
	sh := shapeOf(s)
	return sh.other >= 1 && sh.digit <= 20 && strings.Trim(s, "0123456789.:-/vVTZ+_ ") == ""
}

// IsUUID reports whether s has the 8-4-4-4-12 form of a UUID.
func IsUUID(s string) bool {
	s = strings.Trim(s, "{}")
	return len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && lex.CountIn(s, &lex.HexSet) == 32
}

// IsMixedCase reports whether s has capitals, small letters and digits.
func IsMixedCase(s string) bool {
	sh := shapeOf(s)
	return sh.upper > 0 && sh.lower > 0 && sh.digit > 0
}
