package lex

import "strings"

// A Word is a word that [Words] find and what its owner knows it by.
type Word struct {
	Text string // in small letters
	// Index is the number of the rule that the word belongs to, Kind the kind of the rule.
	Index int
	Kind  uint8
}

// A Hit is a word in a text.
type Hit struct {
	Begin, End, Index int
	Kind              uint8
}

// Words finds all of a set of words in one pass over a text, ignoring case. A table by the first three bytes
// has the few words that may begin at a place.
type Words struct {
	table [1 << (3 * headBits)]uint16 // indexes of lists; most are 0, which has no word
	lists [][]Word
	// fourth has a bit for each fourth byte of the words of a list, all for a shorter word.
	fourth []uint32
}

const headBits = 5

// headClass has the bits of each byte that count in a head. They are the same for both cases of a letter, and
// for all bytes beyond ASCII.
var headClass = func() (t [256]uint16) {
	for c := range uint16(0x80) {
		t[c] = c & (1<<headBits - 1)
	}
	return t
}()

// NewWords returns the set of words.
func NewWords(words []Word) *Words {
	x := &Words{lists: make([][]Word, 1), fourth: make([]uint32, 1)}
	for _, w := range words {
		head := 0
		for i := range 3 {
			head = head<<headBits | int(headClass[ByteAt(w.Text, i)])
		}
		heads := 1 << (max(0, 3-len(w.Text)) * headBits) // of a short word: any bytes follow
		for h := head; h < head+heads; h++ {
			if x.table[h] == 0 {
				x.table[h] = uint16(len(x.lists)) //nolint:gosec // there are at most as many lists as heads
				x.lists, x.fourth = append(x.lists, nil), append(x.fourth, 0)
			}
			list := x.table[h]
			if x.lists[list] = append(x.lists[list], w); len(w.Text) > 3 {
				x.fourth[list] |= 1 << headClass[w.Text[3]]
			} else {
				x.fourth[list] = 1<<32 - 1
			}
		}
	}
	return x
}

// Each calls found for every word that occurs in s, in the order of their begins.
func (x *Words) Each(s string, found func(w *Word, begin, end int)) {
	head, next := uint16(0), headClass[ByteAt(s, 0)]
	for begin := -2; begin < len(s); begin++ {
		head = (head<<headBits | next) & (1<<(3*headBits) - 1)
		if next = 0; begin+3 < len(s) {
			next = headClass[s[begin+3]]
		}
		list := x.table[head]
		if list == 0 || x.fourth[list]>>next&1 == 0 || begin < 0 {
			continue
		}
		words := x.lists[list]
		for k := range words {
			w := &words[k]
			end := begin + len(w.Text)
			if end <= len(s) && headClass[s[end-1]] == headClass[w.Text[len(w.Text)-1]] && strings.EqualFold(s[begin:end], w.Text) {
				found(w, begin, end)
			}
		}
	}
}

// FoldByte returns the lower case of an ASCII letter, and any other byte unchanged.
func FoldByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
