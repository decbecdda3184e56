package redaction

// An automaton finds all of a set of words in one pass over a text, whatever
// their case (ASCII). It is the Aho-Corasick automaton as a dense table, so the
// work per byte is one look-up and does not depend on the text.
type automaton struct {
	class [256]uint8
	// next[state<<classBits|class] is the state after one more byte. States are
	// numbered so that those which end a word come last, from accepting on.
	next      []uint16
	accepting uint16
	found     [][]trigger // by state-accepting
}

const (
	classBits = 6
	maxStates = 1 << 16
)

// A trigger is a word and what to look for where it occurs.
type trigger struct {
	word string // folded
	kind triggerKind
	// index is the number of the token format or name.
	index int
}

type triggerKind uint8

const (
	onPlaceholder triggerKind = iota
	onToken
	onName
	onURI
	onDSN
	onPEM
	onPPK
	onScheme
	onCommand
	onCall
	onBasic64
	onHost
	onMail
)

type trieNode struct {
	child map[uint8]int
	fail  int
	found []trigger
}

func newAutomaton(triggers []trigger) *automaton {
	a := &automaton{}
	a.assignClasses(triggers)
	trie := a.buildTrie(triggers)
	order := linkFailures(trie)
	a.tabulate(trie, order)
	return a
}

// assignClasses gives each byte that occurs in a word its class, upper and
// lower case the same; class 0 is every other byte. Bytes beyond the classes
// share the last one, which makes the automaton a filter: every matcher checks
// the word itself.
func (a *automaton) assignClasses(triggers []trigger) {
	n := uint8(1)
	for _, t := range triggers {
		for i := range len(t.word) {
			c := foldByte(t.word[i])
			if a.class[c] != 0 {
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
	trie := []trieNode{{child: map[uint8]int{}}}
	for _, t := range triggers {
		at := 0
		for i := range len(t.word) {
			c := a.class[foldByte(t.word[i])]
			to, ok := trie[at].child[c]
			if !ok {
				to = len(trie)
				trie = append(trie, trieNode{child: map[uint8]int{}})
				trie[at].child[c] = to
			}
			at = to
		}
		trie[at].found = append(trie[at].found, t)
	}
	return trie
}

// linkFailures sets the fail links and returns the nodes breadth first.
func linkFailures(trie []trieNode) []int {
	order := []int{0}
	for i := 0; i < len(order); i++ {
		node := order[i]
		for c := uint8(1); c < 1<<classBits; c++ {
			to, ok := trie[node].child[c]
			if !ok {
				continue
			}
			order = append(order, to)
			if node == 0 {
				continue
			}
			f := trie[node].fail
			for f != 0 && !has(trie[f].child, c) {
				f = trie[f].fail
			}
			trie[to].fail = trie[f].child[c]
			trie[to].found = append(trie[to].found, trie[trie[to].fail].found...)
		}
	}
	return order
}

func has(m map[uint8]int, c uint8) bool { _, ok := m[c]; return ok }

func (a *automaton) tabulate(trie []trieNode, order []int) {
	if len(trie) > maxStates {
		panic("redaction: too many rules for the automaton")
	}
	number := make([]uint16, len(trie))
	n := uint16(0)
	for _, accepting := range []bool{false, true} {
		if accepting {
			a.accepting = n
		}
		for _, node := range order {
			if (len(trie[node].found) > 0) == accepting {
				number[node] = n
				n++
			}
		}
	}
	a.found = make([][]trigger, int(n-a.accepting))
	a.next = make([]uint16, len(trie)<<classBits)
	for _, node := range order {
		if found := trie[node].found; len(found) > 0 {
			a.found[number[node]-a.accepting] = found
		}
		row := a.next[int(number[node])<<classBits:]
		fail := a.next[int(number[trie[node].fail])<<classBits:]
		for c := range 1 << classBits {
			if to, ok := trie[node].child[uint8(c)]; ok {
				row[c] = number[to]
			} else if node != 0 {
				row[c] = fail[c]
			}
		}
	}
}

// each calls found for every word that occurs in s, with its range.
func (a *automaton) each(s string, found func(t trigger, begin, end int)) {
	state := uint(0)
	for i := 0; i < len(s); i++ {
		state = uint(a.next[state<<classBits|uint(a.class[s[i]])])
		if state < uint(a.accepting) {
			continue
		}
		for _, t := range a.found[state-uint(a.accepting)] {
			found(t, i+1-len(t.word), i+1)
		}
	}
}

// foldByte is the lower case of an ASCII letter and any other byte itself.
func foldByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
