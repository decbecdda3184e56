package lex

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Word is a word that an Automaton finds and what its owner knows it by.
type Word struct {
	Text string // in small letters
	// Index is the number of the rule that the word belongs to, Kind the kind of the rule.
	Index int
	Kind  uint8
}

// An Automaton finds all of a set of words in one pass over a text, ignoring the
// case of ASCII letters. It is an Aho-Corasick automaton as a dense table: the
// work per byte is one look-up and does not depend on the text. The library
// petar-dambovaliev/aho-corasick reads 52 MB/s with the same words, a tenth.
type Automaton struct {
	class [256]uint8
	// next[state<<classBits|class] is the state after one more byte. States are
	// numbered so that those that end a word come last, from accepting on.
	next      []uint16
	accepting uint
	found     [][]Word // by state-accepting
	longest   int      // bytes of the longest word
}

const (
	classBits = 6
	maxStates = 1 << 16
)

type trieNode struct {
	next  [1 << classBits]int // by class; 0 until complete, unless there is a child
	fail  int                 // the node of the longest suffix that begins a word
	found []Word
}

// NewAutomaton returns an error if the words need more than maxStates.
func NewAutomaton(words []Word) (*Automaton, error) {
	a := &Automaton{}
	a.assignClasses(words)
	trie := []trieNode{{}}
	for _, t := range words {
		a.longest = max(a.longest, len(t.Text))
		at := 0
		for i := range len(t.Text) {
			c := a.class[FoldByte(t.Text[i])]
			if trie[at].next[c] == 0 {
				trie[at].next[c] = len(trie)
				trie = append(trie, trieNode{})
			}
			at = trie[at].next[c]
		}
		trie[at].found = append(trie[at].found, t)
	}
	if len(trie) > maxStates {
		return nil, fmt.Errorf("the rules have too many literals (%d states of at most %d): remove rules or shorten literals", len(trie), maxStates)
	}
	a.tabulate(trie, complete(trie))
	return a, nil
}

// assignClasses gives each byte that occurs in a word its class, the same for
// upper and lower case. Class 0 is every other byte. Bytes beyond ASCII, and
// those for which no class is left, share the last class, so the Automaton may
// report a word that is not there: every matcher compares the word itself.
func (a *Automaton) assignClasses(words []Word) {
	const last = 1<<classBits - 1
	n := uint8(1)
	for _, t := range words {
		for i := range len(t.Text) {
			switch c := FoldByte(t.Text[i]); {
			case c >= utf8.RuneSelf:
				a.class[c] = last
			case a.class[c] == 0:
				a.class[c] = n
				n = min(n+1, last)
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[FoldByte(c)]
	}
}

// complete adds to each node the words of its fail node, and where the classes
// without a child lead. It returns the nodes breadth first.
func complete(trie []trieNode) []int {
	order := []int{0}
	for i := 0; i < len(order); i++ {
		node := &trie[order[i]]
		fail := &trie[node.fail]
		for c, to := range node.next {
			if to == 0 {
				node.next[c] = fail.next[c]
				continue
			}
			order = append(order, to)
			if i > 0 {
				trie[to].fail = fail.next[c]
				trie[to].found = append(trie[to].found, trie[fail.next[c]].found...)
			}
		}
	}
	return order
}

// tabulate numbers the nodes, those without words first, and fills the table.
func (a *Automaton) tabulate(trie []trieNode, order []int) {
	slices.SortStableFunc(order, func(m, n int) int { return min(1, len(trie[m].found)) - min(1, len(trie[n].found)) })
	number := make([]uint16, len(trie))
	for i, node := range order {
		number[node] = uint16(i)
		if found := trie[node].found; len(found) > 0 {
			a.found = append(a.found, found)
		}
	}
	a.accepting = uint(len(trie) - len(a.found))
	a.next = make([]uint16, len(trie)<<classBits)
	for i := range trie {
		row := a.next[int(number[i])<<classBits:]
		for c, to := range trie[i].next {
			row[c] = number[to]
		}
	}
}

// A text is read in four places at a time, in blocks of these sizes, because each
// look-up depends on the one before: one place reads 230 MB/s, four 580.
const (
	lanes    = 4
	minBlock = 256
	maxBlock = 4 << 10
)

// Each calls found for every word that occurs in s, in the order of their ends: hits
// are kept until those of the lanes before are reported.
func (a *Automaton) Each(s string, found func(t *Word, begin, end int)) {
	state, at := uint(0), 0
	var hits [lanes][]hit
	for len(s)-at >= lanes*minBlock {
		block := min(maxBlock, (len(s)-at)/lanes)
		state = a.blocks(s, at, block, state, &hits)
		at += lanes * block
		for i := range hits {
			for _, h := range hits[i] {
				a.report(h.state, h.end, found)
			}
			hits[i] = hits[i][:0]
		}
	}
	for ; at < len(s); at++ {
		if state = a.step(state, s[at]); state >= a.accepting {
			a.report(state, at+1, found)
		}
	}
}

func (a *Automaton) step(state uint, c byte) uint {
	return uint(a.next[state<<classBits|uint(a.class[c])])
}

// stateAt returns the state before s[i]: only the bytes of the longest word count.
func (a *Automaton) stateAt(s string, i int) uint {
	state := uint(0)
	for _, c := range []byte(s[max(0, i-a.longest):i]) {
		state = a.step(state, c)
	}
	return state
}

// A hit is an accepting state and where it was reached.
type hit struct {
	state uint
	end   int
}

// blocks reads the four blocks of s from at on, the first one in the given state, and
// returns the state after the last one. It is the innermost loop of the package, and
// unrolled by hand for that reason.
func (a *Automaton) blocks(s string, at, block int, s0 uint, hits *[lanes][]hit) uint {
	next, class, accepting := a.next, &a.class, a.accepting
	at1, at2, at3 := at+block, at+2*block, at+3*block
	s1, s2, s3 := a.stateAt(s, at1), a.stateAt(s, at2), a.stateAt(s, at3)
	b0, b1, b2, b3 := s[at:at1], s[at1:][:block], s[at2:][:block], s[at3:][:block]
	for i := range len(b0) {
		s0 = uint(next[s0<<classBits|uint(class[b0[i]])])
		s1 = uint(next[s1<<classBits|uint(class[b1[i]])])
		s2 = uint(next[s2<<classBits|uint(class[b2[i]])])
		s3 = uint(next[s3<<classBits|uint(class[b3[i]])])
		if s0 >= accepting {
			hits[0] = append(hits[0], hit{s0, at + i + 1})
		}
		if s1 >= accepting {
			hits[1] = append(hits[1], hit{s1, at1 + i + 1})
		}
		if s2 >= accepting {
			hits[2] = append(hits[2], hit{s2, at2 + i + 1})
		}
		if s3 >= accepting {
			hits[3] = append(hits[3], hit{s3, at3 + i + 1})
		}
	}
	return s3
}

func (a *Automaton) report(state uint, end int, found func(t *Word, begin, end int)) {
	words := a.found[state-a.accepting]
	for i := range words {
		found(&words[i], end-len(words[i].Text), end)
	}
}

// FoldByte returns the lower case of an ASCII letter, and any other byte unchanged.
func FoldByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
