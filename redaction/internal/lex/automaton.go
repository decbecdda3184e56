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

// Each calls found for every word that occurs in s, in the order of their ends.
func (a *Automaton) Each(s string, found func(t *Word, begin, end int)) {
	next, class, accepting, state := a.next, &a.class, a.accepting, uint(0)
	for i := range len(s) {
		state = uint(next[state<<classBits|uint(class[s[i]])])
		if state < accepting {
			continue
		}
		words := a.found[state-accepting]
		for k := range words {
			found(&words[k], i+1-len(words[k].Text), i+1)
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
