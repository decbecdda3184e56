package redaction

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// values is the set of secrets found so far in a payload. A secret found in one
// place is masked in all, such as in the name of a file.
type values struct {
	seen   map[string]bool // values that were inspected
	sorted []span          // by value
	// parents has, for each value, the longest other value that it begins with, or -1.
	parents []int
	// heads has 1<<headBits bits, one set for the hash of the head of each value.
	heads []uint64
}

const (
	minKnown = 8       // a value that is masked wherever it occurs, at least
	maxValue = 4 << 10 // the part of a text that is compared with values
)

const headBits = 20 // most of the bits are 0

// add adds the values that are specific, and not shorter than minKnown.
func (v *values) add(spans []span, specific func(string) bool) {
	if v.seen == nil {
		v.seen = map[string]bool{}
	}
	for _, s := range spans {
		if len(s.value) < minKnown || len(s.value) > maxValue || v.seen[s.value] {
			continue
		}
		v.seen[s.value] = true
		if specific(s.value) {
			v.sorted = append(v.sorted, s)
		}
	}
}

// isUnmistakable reports whether a value is not a common word, which half the text may hold.
func isUnmistakable(value string) bool {
	return strings.ContainsAny(value, lex.Letters) && strings.ContainsAny(value, lex.Digits) && (judge.IsRandom(value) || judge.IsKeyLike(value) || judge.IsUUID(value))
}

// isSpecific is isUnmistakable or a password such as mellow-pelican-9.
func isSpecific(value string) bool {
	return isUnmistakable(value) || strings.ContainsAny(value, lex.Letters) && strings.ContainsAny(value, lex.Digits) && !strings.ContainsAny(value, " \t")
}

// index sorts the values and fills heads. It has to be called before at.
func (v *values) index() {
	slices.SortFunc(v.sorted, func(a, b span) int { return strings.Compare(a.value, b.value) })
	v.parents = v.parents[:0]
	for i, s := range v.sorted {
		parent := i - 1
		for parent >= 0 && !strings.HasPrefix(s.value, v.sorted[parent].value) {
			parent = v.parents[parent]
		}
		v.parents = append(v.parents, parent)
	}
	if v.heads == nil {
		v.heads = make([]uint64, 1<<headBits/64)
	}
	for _, s := range v.sorted {
		h := headHash(s.value) >> (32 - headBits)
		v.heads[h>>6] |= 1 << (h & 63)
	}
}

// headHash hashes the first minKnown bytes of s.
func headHash(s string) uint32 {
	x := binary.LittleEndian.Uint64([]byte(s[:minKnown]))
	return uint32(x * 0x9e3779b97f4a7c15 >> 32)
}

// at returns the longest value that s begins with. Such a value sorts before s,
// so the greatest value that is not after s begins with it, or is it.
func (v *values) at(s string) (span, bool) {
	h := headHash(s) >> (32 - headBits)
	if v.heads[h>>6]>>(h&63)&1 == 0 {
		return span{}, false
	}
	s = s[:min(len(s), maxValue)]
	i, exact := slices.BinarySearchFunc(v.sorted, s, func(e span, t string) int { return strings.Compare(e.value, t) })
	if !exact {
		i--
	}
	if i < 0 {
		return span{}, false
	}
	common := 0 // bytes that s and the greatest value share
	for value := v.sorted[i].value; common < len(value) && common < len(s) && value[common] == s[common]; {
		common++
	}
	for i >= 0 && len(v.sorted[i].value) > common {
		i = v.parents[i]
	}
	if i < 0 {
		return span{}, false
	}
	return v.sorted[i], true
}

// maskKnown masks every occurrence of a known value in what is not masked yet.
func (pt *part) maskKnown(v *values) {
	if len(v.sorted) == 0 {
		return
	}
	var more []span
	at := 0
	for i := 0; i <= len(pt.spans); i++ {
		stop := len(pt.raw)
		if i < len(pt.spans) {
			stop = pt.spans[i].start
		}
		for at+minKnown <= stop {
			s, ok := v.at(pt.raw[at:stop])
			if !ok || !isWhole(pt.raw, at, at+len(s.value)) {
				at++
				continue
			}
			s.start, s.end, s.Rule = at, at+len(s.value), "found elsewhere"
			more = append(more, s)
			at = s.end
		}
		if i < len(pt.spans) {
			at = pt.spans[i].end
		}
	}
	if len(more) > 0 {
		c := collector{raw: pt.raw, spans: append(more, pt.spans...)}
		pt.spans = c.finish()
	}
}

// tokenSet are the characters of a known value that is masked without quotes around it.
var tokenSet = lex.SetOf(lex.Letters, lex.Digits, "_-.+/~@%!:#^$*?,")

// isWhole reports whether the known value s[begin:end] is a whole literal or token: its
// author may have chosen a value that is code.
func isWhole(s string, begin, end int) bool {
	before, after := lex.ByteAt(s, begin-1), lex.ByteAt(s, end)
	if (before == '"' || before == '\'') && before == after {
		return true
	}
	escaped := begin >= 2 && strings.IndexByte("ntr", before) >= 0 && s[begin-2] == '\\' || begin >= 3 && s[begin-3] == '%'
	return lex.AllIn(strings.TrimRight(s[begin:end], "="), &tokenSet) &&
		(escaped || !lex.IsAlnum(before) || !lex.IsAlnum(s[begin])) && (!lex.IsAlnum(after) || !lex.IsAlnum(s[end-1]))
}
