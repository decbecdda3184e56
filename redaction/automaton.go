package redaction

import "unicode/utf8"

// An automaton finds all of a set of words in one pass over a text, ignoring the
// case of ASCII letters. It is an Aho-Corasick automaton as a dense table: the
// work per byte is one look-up and does not depend on the text.
type automaton struct {
	class [256]uint8
	// next[state<<classBits|class] is the state after one more byte. States are
	// numbered so that those that end a word come last, from accepting on.
	next      []uint16
	accepting uint16
	found     [][]trigger // by state-accepting
	longest   int         // bytes of the longest word
}

const (
	classBits = 6
	maxStates = 1 << 16
)

type trieNode struct {
	next  [1 << classBits]int // by class; 0 until complete, unless there is a child
	fail  int                 // the node of the longest suffix that begins a word
	found []trigger
}

func newAutomaton(triggers []trigger) *automaton {
	a := &automaton{}
	a.assignClasses(triggers)
	trie := a.buildTrie(triggers)
	a.tabulate(trie, complete(trie))
	return a
}

// assignClasses gives each byte that occurs in a word its class, the same for
// upper and lower case. Class 0 is every other byte. Bytes beyond ASCII, and
// those for which no class is left, share the last class, so the automaton may
// report a word that is not there: every matcher compares the word itself.
func (a *automaton) assignClasses(triggers []trigger) {
	n := uint8(1)
	for _, t := range triggers {
		for i := range len(t.word) {
			c := foldByte(t.word[i])
			if a.class[c] != 0 {
				continue
			}
			if c >= utf8.RuneSelf {
				a.class[c] = 1<<classBits - 1
				continue
			}
			a.class[c] = n
			n = min(n+1, 1<<classBits-1)
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[foldByte(c)]
	}
}

func (a *automaton) buildTrie(triggers []trigger) []trieNode {
	trie := []trieNode{{}}
	for _, t := range triggers {
		a.longest = max(a.longest, len(t.word))
		at := 0
		for i := range len(t.word) {
			c := a.class[foldByte(t.word[i])]
			if trie[at].next[c] == 0 {
				trie[at].next[c] = len(trie)
				trie = append(trie, trieNode{})
			}
			at = trie[at].next[c]
		}
		trie[at].found = append(trie[at].found, t)
	}
	return trie
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

func (a *automaton) tabulate(trie []trieNode, order []int) {
	if len(trie) > maxStates {
		panic("redaction: too many rules for the automaton")
	}
	number := make([]uint16, len(trie))
	n := uint16(0)
	for _, accepting := range []bool{false, true} {
		for _, node := range order {
			if found := trie[node].found; len(found) > 0 == accepting {
				number[node] = n
				n++
				if accepting {
					a.found = append(a.found, found)
				}
			}
		}
	}
	a.accepting = n - uint16(len(a.found)) //nolint:gosec // len(a.found) is at most n
	a.next = make([]uint16, len(trie)<<classBits)
	for i := range trie {
		row := a.next[int(number[i])<<classBits:]
		for c, to := range trie[i].next {
			row[c] = number[to]
		}
	}
}

// A text is read in four places at a time, in blocks of these sizes, because each
// look-up depends on the one before: one place reads 230 MB/s, two 410, four 580.
const (
	lanes    = 4
	minBlock = 256
	maxBlock = 4 << 10
)

// each calls found for every word that occurs in s, in the order of their ends:
// the words of the later lanes are kept until those before are reported.
func (a *automaton) each(s string, found func(t *trigger, begin, end int)) {
	state, at := uint(0), 0
	var later [lanes - 1][]hit
	for len(s)-at >= lanes*minBlock {
		block := min(maxBlock, (len(s)-at)/lanes)
		state = a.blocks(s[:at+lanes*block], at, block, state, &later, found)
		at += lanes * block
		for i, hits := range later {
			for _, h := range hits {
				a.report(h.state, h.end, found)
			}
			later[i] = hits[:0]
		}
	}
	for i := at; i < len(s); i++ {
		state = a.step(state, s[i])
		if state >= uint(a.accepting) {
			a.report(state, i+1, found)
		}
	}
}

func (a *automaton) step(state uint, c byte) uint {
	return uint(a.next[state<<classBits|uint(a.class[c])])
}

// stateAt returns the state before s[i]: only the bytes of the longest word count.
func (a *automaton) stateAt(s string, i int) uint {
	state := uint(0)
	for _, c := range []byte(s[i-a.longest : i]) {
		state = a.step(state, c)
	}
	return state
}

// A hit is an accepting state and where it was reached.
type hit struct {
	state uint
	end   int
}

// blocks reads the four blocks of s from at on, the first one in the given state,
// and returns the state after the last one. It reports the words of the first
// block and keeps those of the others in later. It is the innermost loop of the
// package, and unrolled by hand for that reason.
func (a *automaton) blocks(s string, at, block int, s0 uint, later *[lanes - 1][]hit, found func(t *trigger, begin, end int)) uint {
	next, class, accepting := a.next, &a.class, uint(a.accepting)
	at1, at2, at3 := at+block, at+2*block, at+3*block
	s1, s2, s3 := a.stateAt(s, at1), a.stateAt(s, at2), a.stateAt(s, at3)
	b0, b1, b2, b3 := s[at:at1], s[at1:][:block], s[at2:][:block], s[at3:][:block]
	for i := range len(b0) {
		s0 = uint(next[s0<<classBits|uint(class[b0[i]])])
		s1 = uint(next[s1<<classBits|uint(class[b1[i]])])
		s2 = uint(next[s2<<classBits|uint(class[b2[i]])])
		s3 = uint(next[s3<<classBits|uint(class[b3[i]])])
		if s0 >= accepting {
			a.report(s0, at+i+1, found)
		}
		if s1 >= accepting {
			later[0] = append(later[0], hit{s1, at1 + i + 1})
		}
		if s2 >= accepting {
			later[1] = append(later[1], hit{s2, at2 + i + 1})
		}
		if s3 >= accepting {
			later[2] = append(later[2], hit{s3, at3 + i + 1})
		}
	}
	return s3
}

func (a *automaton) report(state uint, end int, found func(t *trigger, begin, end int)) {
	triggers := a.found[state-uint(a.accepting)]
	for i := range triggers {
		found(&triggers[i], end-len(triggers[i].word), end)
	}
}

// foldByte returns the lower case of an ASCII letter, and any other byte unchanged.
func foldByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
