package lex

import (
	"slices"
	"strings"
)

// A Set is a set of bytes: 1 for those that are in it.
type Set [256]uint8

// SetOf returns the set of the bytes of parts.
func SetOf(parts ...string) (s Set) {
	for _, p := range parts {
		for i := range len(p) {
			s[p[i]] = 1
		}
	}
	return s
}

// Has reports whether c is in the set.
func (s *Set) Has(c byte) bool { return s[c] != 0 }

// Complement returns the set of all other bytes.
func (s Set) Complement() (other Set) {
	for c := range s {
		other[c] = 1 - s[c]
	}
	return other
}

// FirstIn returns the offset of the first byte of the set in s from i on, or len(s). It reads eight bytes at a time.
func FirstIn(s string, i int, set *Set) int {
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		if set[t[0]]|set[t[1]]|set[t[2]]|set[t[3]]|set[t[4]]|set[t[5]]|set[t[6]]|set[t[7]] != 0 {
			break
		}
	}
	for i < len(s) && set[s[i]] == 0 {
		i++
	}
	return i
}

// The bytes of ASCII by kind.
const (
	Digits  = "0123456789"
	Lowers  = "abcdefghijklmnopqrstuvwxyz"
	Uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Letters = Lowers + Uppers
	Hexes   = Digits + "abcdefABCDEF"
)

// Sets of general use.
var (
	DigitSet  = SetOf(Digits)
	LowerSet  = SetOf(Lowers)
	LetterSet = SetOf(Letters)
	VowelSet  = SetOf("aeiouyAEIOUY")
	AlnumSet  = SetOf(Digits, Letters)
	CodeIdent = SetOf(Digits, Letters, "_")     // an identifier of a programming language
	WordSet   = SetOf(Digits, Letters, "_-")    // also base64url
	IdentSet  = SetOf(Digits, Letters, "_-.$")  // a name, possibly with members
	Base64Set = SetOf(Digits, Letters, "+/=_-") // both alphabets, padded
	Plain64   = SetOf(Digits, Letters, "+/")    // the standard alphabet
	KeySet    = SetOf(Digits, Letters, "+/=")   // the same, padded
	Base32Set = SetOf(Uppers, "234567")
	HexSet    = SetOf(Hexes)
	UpperHex  = SetOf(Digits, "ABCDEF")
	LowerHex  = SetOf(Digits, "abcdef")
	BlankSet  = SetOf(" \t")
	SpaceSet  = SetOf(" \t\r\n")
	QuoteSet  = SetOf("\"'`")
	NotBlank  = SpaceSet.Complement()
)

// IsAlnum reports whether c is an ASCII letter or digit.
func IsAlnum(c byte) bool { return AlnumSet.Has(c) }

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsUpper reports whether c is an ASCII capital.
func IsUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// IsLower reports whether c is a small ASCII letter.
func IsLower(c byte) bool { return 'a' <= c && c <= 'z' }

// Run returns the end of the run of set that begins at i, at most limit bytes after i.
func Run(s string, i int, set *Set, limit int) int {
	end := min(len(s), i+limit)
	for i < end && set.Has(s[i]) {
		i++
	}
	return i
}

// RunBack returns the begin of the run of set that ends at i, at most limit bytes before i.
func RunBack(s string, i int, set *Set, limit int) int {
	begin := max(0, i-limit)
	for i > begin && set.Has(s[i-1]) {
		i--
	}
	return i
}

// CountIn returns how many bytes of s are in the set.
func CountIn(s string, set *Set) (n int) {
	for i := range len(s) {
		n += int(set[s[i]])
	}
	return n
}

// AllIn reports whether all bytes of s are in the set.
func AllIn(s string, set *Set) bool { return Run(s, 0, set, len(s)) == len(s) }

// Distinct returns how many different bytes s has.
func Distinct(s string) (n int) {
	for _, isIn := range SetOf(s) {
		n += int(isIn)
	}
	return n
}

// ByteAt returns s[i], or 0 outside of s.
func ByteAt(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// LastByte returns the last byte of s, or 0.
func LastByte(s string) byte { return ByteAt(s, len(s)-1) }

// BeginsWith reports whether s begins with one of heads.
func BeginsWith(s string, heads []string) bool {
	return slices.ContainsFunc(heads, func(head string) bool { return strings.HasPrefix(s, head) })
}

// SkipWord returns the end of the first of words that s has at i, or i.
func SkipWord(s string, i int, words ...string) int {
	for _, w := range words {
		if strings.HasPrefix(s[i:], w) {
			return i + len(w)
		}
	}
	return i
}

// ContainsAny reports whether s contains one of parts.
func ContainsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// FollowsAlnum reports whether a letter or digit that is not an escape, such as \n, is before i.
func FollowsAlnum(s string, i int) bool {
	if i == 0 || !IsAlnum(s[i-1]) {
		return false
	}
	return i < 2 || s[i-2] != '\\'
}

// LineEnd returns the offset after the line that begins at at and its LF.
func LineEnd(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s)
}

// LineEndWithin is LineEnd, but reads at most n bytes.
func LineEndWithin(s string, at, n int) int { return LineEnd(s[:min(len(s), at+n)], at) }

// LineBegin returns where the line of i begins, at most 512 bytes before i.
func LineBegin(s string, i int) int {
	from := max(0, i-512)
	if strings.IndexByte(s[from:i], '\n') < 0 { // a long line: this reads many bytes at a time
		return from
	}
	return from + strings.LastIndexByte(s[from:i], '\n') + 1
}
