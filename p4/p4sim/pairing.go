package main

import "slices"

// A block pairs size equal lines, from a in the old text and b in the new.
type block struct{ a, b, size int }

// A pairing finds which lines two texts share: the longest common run first,
// then the same on both sides of it (Ratcliff and Obershelp). The recorded
// diffs pair lines this way; the shortest edit script often differs from it.
type pairing struct {
	old, new []string
	// places lists where each line occurs in the new text.
	places map[string][]int
}

// popularFrom is how many lines a text has when frequent lines, such as blank
// ones, no longer start a run.
const popularFrom = 200

func pairLines(old, new []string) []block {
	p := pairing{old: old, new: new, places: map[string][]int{}}
	for i, line := range new {
		p.places[line] = append(p.places[line], i)
	}
	if n := len(new); n >= popularFrom {
		for line, at := range p.places {
			if len(at) > n/100+1 {
				delete(p.places, line)
			}
		}
	}
	return p.join(p.blocks())
}

// blocks visits ranges in a queue of its own: texts can be too long for the stack.
func (p *pairing) blocks() []block {
	type span struct{ aLow, aHigh, bLow, bHigh int }
	var found []block
	todo := []span{{0, len(p.old), 0, len(p.new)}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m := p.longest(s.aLow, s.aHigh, s.bLow, s.bHigh)
		if m.size == 0 {
			continue
		}
		found = append(found, m)
		if s.aLow < m.a && s.bLow < m.b {
			todo = append(todo, span{s.aLow, m.a, s.bLow, m.b})
		}
		if m.a+m.size < s.aHigh && m.b+m.size < s.bHigh {
			todo = append(todo, span{m.a + m.size, s.aHigh, m.b + m.size, s.bHigh})
		}
	}
	slices.SortFunc(found, func(x, y block) int { return x.a - y.a })
	return found
}

// longest is the longest common run in the ranges; of equal ones the first in
// the old text, of those the first in the new.
func (p *pairing) longest(aLow, aHigh, bLow, bHigh int) block {
	best := block{aLow, bLow, 0}
	runs := map[int]int{}
	for i := aLow; i < aHigh; i++ {
		next := map[int]int{}
		for _, j := range p.places[p.old[i]] {
			if j < bLow {
				continue
			}
			if j >= bHigh {
				break
			}
			size := runs[j-1] + 1
			next[j] = size
			if size > best.size {
				best = block{i - size + 1, j - size + 1, size}
			}
		}
		runs = next
	}
	return p.extend(best, aLow, aHigh, bLow, bHigh)
}

// extend adds the popular lines around a run.
func (p *pairing) extend(m block, aLow, aHigh, bLow, bHigh int) block {
	for m.a > aLow && m.b > bLow && p.old[m.a-1] == p.new[m.b-1] {
		m = block{m.a - 1, m.b - 1, m.size + 1}
	}
	for m.a+m.size < aHigh && m.b+m.size < bHigh && p.old[m.a+m.size] == p.new[m.b+m.size] {
		m.size++
	}
	return m
}

// join merges blocks that touch in both texts.
func (p *pairing) join(blocks []block) []block {
	var joined []block
	for _, m := range blocks {
		if n := len(joined); n > 0 && joined[n-1].a+joined[n-1].size == m.a && joined[n-1].b+joined[n-1].size == m.b {
			joined[n-1].size += m.size
			continue
		}
		joined = append(joined, m)
	}
	return joined
}
