package redaction

import (
	"cmp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// values is the set of secrets found so far in a payload. A secret found in one
// place is masked in all, such as in the name of a file.
type values struct {
	// found has every value that was inspected, and nil for one that is not masked elsewhere.
	found map[string]*span
	// lengths has the lengths of the values by their first minKnown bytes, the longest first.
	lengths map[string][]int
	// heads[i] has the bytes at the offset i of the values.
	heads [2]lex.Set
}

const (
	minKnown   = 8       // a value that is masked wherever it occurs, at least
	maxValue   = 4 << 10 // a longer value is masked only where it was found
	maxLengths = 64      // of values with the same first bytes
)

// add adds the values that are specific, and not shorter than minKnown.
func (v *values) add(spans []span, specific func(string) bool) {
	if v.found == nil {
		v.found, v.lengths = map[string]*span{}, map[string][]int{}
	}
	for _, s := range spans {
		n := len(s.value)
		if n < minKnown || n > maxValue { // the rest of a text may be one value, of many lines
			continue
		} else if _, seen := v.found[s.value]; seen {
			continue
		}
		v.found[s.value] = nil
		head := s.value[:minKnown]
		i, known := slices.BinarySearchFunc(v.lengths[head], n, func(a, b int) int { return cmp.Compare(b, a) })
		if !specific(s.value) || !known && len(v.lengths[head]) == maxLengths {
			continue
		}
		v.found[s.value] = &s
		v.heads[0][head[0]], v.heads[1][head[1]] = 1, 1
		if !known {
			v.lengths[head] = slices.Insert(v.lengths[head], i, n)
		}
	}
}

// isUnmistakable reports whether a value is not a common word, which half the text may hold.
func isUnmistakable(value string) bool {
	return isSpecific(value) && (judge.IsRandom(value) || judge.IsKeyLike(value) || judge.IsUUID(value))
}

// isSpecific is isUnmistakable or a password such as mellow-pelican-9.
func isSpecific(value string) bool {
	return strings.ContainsAny(value, lex.Letters) && strings.ContainsAny(value, lex.Digits) && !strings.ContainsAny(value, " \t")
}

// maskKnown masks every occurrence of a known value in what is not masked yet.
func (pt *part) maskKnown(v *values) {
	if len(v.lengths) == 0 {
		return
	}
	more, rest := []span(nil), pt.spans
	for at := 0; at+minKnown <= len(pt.raw); {
		stop := len(pt.raw)
		if len(rest) > 0 {
			stop = rest[0].start
		}
		if at+minKnown > stop {
			at, rest = rest[0].end, rest[1:]
			continue
		}
		end := at + 1
		if !v.heads[0].Has(pt.raw[at]) || !v.heads[1].Has(pt.raw[end]) {
			at = end
			continue
		}
		for _, n := range v.lengths[pt.raw[at:at+minKnown]] {
			if at+n > stop {
				continue
			}
			if s := v.found[pt.raw[at:at+n]]; s != nil && isWhole(pt.raw, at, at+n) {
				end = at + n
				known := *s
				known.start, known.end, known.Rule = at, end, "found elsewhere"
				more = append(more, known)
				break
			}
		}
		at = end
	}
	if len(more) > 0 {
		pt.isRead = false
		pt.spans = merge(append(more, pt.spans...))
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
