package redaction

import (
	"math"
	"strings"
	"unicode/utf8"
)

// heads are the lists of words.txt in their order, lists the same as sets.
var heads, lists = parseLists(wordsFile)

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
		a, b := foldByte(s[i]), foldByte(s[i+1])
		if !isLower(a) || !isLower(b) {
			continue
		}
		pairs++
		if !follows[a-'a'][b-'a'] {
			odd++
		}
	}
	return float64(odd) / float64(max(1, pairs)), pairs
}

// isGibberish reports whether the letters of s form no words.
func isGibberish(s string) bool {
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

func shapeOf(s string) shape {
	var counts [8]int
	switches, before := 0, byte(otherKind)
	for _, c := range []byte(s) {
		kind := kinds[c]
		counts[kind]++
		switches += int(meets[kind<<3|before])
		before = kind
	}
	return shape{counts[lowerKind], counts[upperKind], counts[digitKind], counts[blankKind], counts[otherKind], counts[wideKind], switches}
}

const (
	lowerKind = iota
	upperKind
	digitKind
	blankKind
	otherKind
	wideKind
)

// kinds are the kinds of bytes that a shape counts.
var kinds = func() (t [256]byte) {
	for i := range t {
		switch c := byte(i); {
		case isLower(c):
			t[i] = lowerKind
		case isUpper(c):
			t[i] = upperKind
		case isDigit(c):
			t[i] = digitKind
		case c == ' ' || c == '\t':
			t[i] = blankKind
		case c >= utf8.RuneSelf:
			t[i] = wideKind
		default:
			t[i] = otherKind
		}
	}
	return t
}()

// meets is 1 if one of the two kinds is letters and the other digits.
var meets = func() (t [64]byte) {
	for _, letter := range []int{lowerKind, upperKind} {
		t[letter<<3|digitKind], t[digitKind<<3|letter] = 1, 1
	}
	return t
}()

func (sh shape) letters() int { return sh.lower + sh.upper }

// isRandom reports whether s, of 6 bytes or more, looks generated and not written.
func isRandom(s string) bool {
	s = s[:min(len(s), maxInspected)]
	if len(s) < 6 {
		return false
	}
	sh := shapeOf(s)
	if sh.blank > 0 || sh.wide > 2 || !sh.hasRandomShape(s) {
		return false
	}
	return distinct(s) >= 5 && !isWordy(s)
}

// hasRandomShape reports whether s, of this shape, mixes like generated text.
func (sh shape) hasRandomShape(s string) bool {
	switch {
	case sh.digit == 0:
		return isGibberish(s) || sh.upper > 1 && sh.lower > 1 && sh.other > 1
	case looksLikeVersion(s):
		return false
	case sh.letters() == 0:
		return sh.other == 0 && len(s) >= 10
	}
	return isGibberish(s) || sh.switches >= 3 || sh.switches > 0 && (len(s) >= 8 && sh.digit >= 3 || sh.upper > 0 && sh.other > 0)
}

// isVeryRandom reports whether s can hardly be anything but a key: long, of many
// different bytes, letters and digits mixed throughout.
func isVeryRandom(s string) bool {
	s = s[:min(len(s), maxInspected)]
	sh := shapeOf(s)
	if len(s) < 15 || sh.blank+sh.wide > 0 || sh.digit < 2 || sh.switches < 2 {
		return false
	}
	isHex := allIn(s, &hexSet) // has 16 different bytes at most
	return (isHex && entropy(s) > 2.6 || entropy(s) > 3.2) && (sh.switches >= 4 || !isHex && isGibberish(s)) &&
		!looksLikeVersion(s) && !isUUID(s) && !isWordy(s)
}

// isKeyLike reports whether s has the form of a key, long and of letters and
// digits, although it may count up like the keys of examples.
func isKeyLike(s string) bool {
	s = s[:min(len(s), maxInspected)]
	sh := shapeOf(s)
	return len(s) >= 16 && sh.digit >= 3 && sh.letters() >= 3 && sh.other <= len(s)/8 && sh.blank+sh.wide == 0 && distinct(s) >= 6 && !looksLikeVersion(s) && !isWordy(s)
}

// isWordy reports whether s is mostly words, also with digits, or names of algorithms.
func isWordy(s string) bool {
	all := countIn(s, &letterSet)
	inWords, letters, digit := 0, 0, 0
	for w := range wordsOf(s) {
		if (letters-inWords)*5 > all {
			return false // too many letters are in no word
		}
		core := strings.Trim(w, digits)
		letters += len(core)
		digit += len(w) - len(core)
		if len(core) >= 3 && isPlainWord(core) || isAlgorithm(core) || isAlgorithm(w) {
			inWords += len(core)
		}
	}
	return letters >= 4 && inWords*5 >= letters*4 && digit*5 <= len(s)*2
}

func isAlgorithm(w string) bool {
	return len(w) <= maxAlgorithm && lists["algorithm"][strings.ToLower(w)]
}

// isPlainWord reports whether w has the vowels and pairs of letters of English words.
func isPlainWord(w string) bool {
	share, pairs := oddPairs(w)
	vowels := countIn(w, &vowelSet)
	return pairs == len(w)-1 && share <= 0.15 && vowels*6 >= len(w) && vowels*5 <= len(w)*4
}

// isHumanMade reports whether s looks like a password that a person made up: letters
// with digits or marks, of 8 to 64 bytes.
func isHumanMade(s string) bool {
	sh := shapeOf(s)
	if len(s) < 8 || len(s) > 64 || sh.blank+sh.wide > 0 || sh.letters() < 3 || strings.IndexByte("[<{(", s[0]) >= 0 {
		return false
	}
	return sh.digit >= 2 || countIn(s, &passwordMarks) > 0 && (sh.digit > 0 || sh.upper > 0 && sh.lower > 0)
}

// isKeyLength reports whether n is a usual length of keys and digests.
func isKeyLength(n int) bool { return n == 20 || n == 24 || n == 32 || n == 40 || n >= 43 }

// looksLikeVersion reports whether s is a version, date, time or address.
func looksLikeVersion(s string) bool {
	if dots := strings.SplitN(strings.TrimLeft(s, "v^~>=<"), ".", 3); len(dots) == 3 && len(dots[0]) < 5 && len(dots[1]) < 5 && allIn(dots[0]+dots[1], &digitSet) {
		return true
	}
	sh := shapeOf(s)
	return sh.other >= 1 && sh.digit <= 20 && strings.Trim(s, "0123456789.:-/vVTZ+_ ") == ""
}

// isUUID reports whether s has the 8-4-4-4-12 form of a UUID.
func isUUID(s string) bool {
	s = strings.Trim(s, "{}")
	return len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && countIn(s, &hexSet) == 32
}
