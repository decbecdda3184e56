package lex

import "strings"

// A Word is a word that [Words] find and what its owner knows it by.
type Word struct {
	Text string // in small letters
	// Index is the number of the rule that the word belongs to, Kind the kind of the rule.
	Index int
	Kind  uint8
}

// Words finds all of a set of words in one pass over a text, ignoring case. A table by the first three bytes
// has the few words that may begin at a place.
type Words struct {
	table [1 << (3 * headBits)]uint16 // indexes of lists; most are 0, which has no word
	lists [][]Word
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
	x := &Words{lists: make([][]Word, 1)}
	for _, w := range words {
		head := 0
		for i := range 3 {
			head = head<<headBits | int(headClass[ByteAt(w.Text, i)])
		}
		heads := 1 << (max(0, 3-len(w.Text)) * headBits) // of a short word: any bytes follow
		for h := head; h < head+heads; h++ {
			if x.table[h] == 0 {
				x.table[h] = uint16(len(x.lists)) //nolint:gosec // there are at most as many lists as heads
				x.lists = append(x.lists, nil)
			}
			x.lists[x.table[h]] = append(x.lists[x.table[h]], w)
		}
	}
	return x
}

// Each calls found for every word that occurs in s, in the order of their begins.
func (x *Words) Each(s string, found func(w *Word, begin, end int)) {
	head := headClass[ByteAt(s, 0)]<<headBits | headClass[ByteAt(s, 1)]
	for i := range len(s) {
		head = head << headBits & (1<<(3*headBits) - 1)
		if i+2 < len(s) {
			head |= headClass[s[i+2]]
		}
		list := x.table[head]
		if list == 0 {
			continue
		}
		words := x.lists[list]
		for k := range words {
			w := &words[k]
			end := i + len(w.Text)
			if end <= len(s) && headClass[s[end-1]] == headClass[w.Text[len(w.Text)-1]] && strings.EqualFold(s[i:end], w.Text) {
				found(w, i, end)
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
