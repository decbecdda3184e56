package redaction

import (
	"iter"
	"slices"
	"strings"
)

// name reads the identifier around the stem s[begin:end] and looks for its value.
func (d *detector) name(_, begin, end int) {
	if begin < d.nameEnd {
		return
	}
	a := runBack(d.s, begin, &identSet, maxName)
	b := run(d.s, end, &identSet, maxName)
	d.nameEnd = b
	b = end + len(strings.TrimRight(d.s[end:b], ".-$"))
	if i := strings.LastIndexByte(d.s[a:b], '.'); i > 0 && byteAt(d.s, b) == '(' && lists["method"][strings.ToLower(d.s[a+i+1:b])] {
		b = a + i
	}
	n := d.named(d.s[a:b])
	if n.begin, n.end = a, b; n.strength == noName {
		return
	}
	if n.strength >= mediumName {
		d.table(n)
	}
	d.matchForms(n)
}

// named returns the name ident.
func (d *detector) named(ident string) nameRef {
	known := d.rate(ident)
	return nameRef{ident: ident, strength: known.strength, isPair: known.isPair, rule: known.rule}
}

// A nameRef is an identifier that may name a secret.
type nameRef struct {
	ident      string
	begin, end int
	strength   strength
	// isPair is set if the name announces a user and a password together.
	isPair bool
	// rule gives the strength. form is the place of the value beside the name.
	rule, form string
}

// isPassword reports whether n names a password and not something about it.
func (n nameRef) isPassword() bool {
	return lists["password"][strings.TrimRight(lastWordOf(n.ident), digits)]
}

// computeStrength returns the highest strength of the stems in ident and its rule. The
// strength is lower if the name is about the secret and not the name of the secret.
func (d *detector) computeStrength(ident string) (strength, string) {
	folded := strings.ToLower(ident)
	if containsAny(folded, heads["noname"]) {
		return noName, ""
	}
	words := splitWords(ident)
	best, vendor := d.bestStem(ident, folded, words)
	if best == nil || slices.Contains(words, "public") || slices.Contains(words, "pub") {
		return noName, ""
	}
	strength := best.strength
	switch {
	case vendor != nil && strength == weakName:
		best, strength = vendor, mediumName
	case strength == weakName && isID(words):
		return noName, ""
	}
	if strength >= mediumName && describesSecret(words) {
		strength = weakName
	}
	return strength, best.name
}

// bestStem returns the strongest stem of ident, and the longest of these. vendor is
// one that is a service, or nil.
func (d *detector) bestStem(ident, folded string, words []string) (best, vendor *nameStem) {
	d.all.each(ident, func(t *trigger, _, _ int) {
		if !t.isName {
			return
		}
		n := &d.names[t.index]
		better := best == nil || n.strength > best.strength || n.strength == best.strength && len(n.stem) > len(best.stem)
		if !better && (n.strength != vendorName || vendor != nil) || !n.in(folded, words) {
			return
		}
		if n.strength == vendorName {
			vendor = n
		}
		if better {
			best = n
		}
	})
	return best, vendor
}

// in reports whether the stem, which is in an identifier, counts where it is.
func (n *nameStem) in(folded string, words []string) bool {
	if !n.whole && !n.ending {
		return true
	}
	if n.whole && n.strength == strongName {
		return strings.TrimRight(lastWord(words), digits) == n.stem
	}
	return folded == n.stem || slices.ContainsFunc(words, func(w string) bool {
		core := strings.TrimRight(w, digits)
		return w == n.stem || core == n.stem || n.ending && strings.HasSuffix(core, n.stem)
	})
}

// describesSecret reports whether a name is about a secret, such as password_label.
func describesSecret(words []string) bool {
	final := lastWord(words)
	for _, stem := range []string{"password", "passwd", "secret", "token", "key"} {
		if rest, ok := strings.CutPrefix(final, stem); ok && rest != "" {
			final = rest
		}
	}
	return len(words) > 1 && (lists["about"][final] || slices.ContainsFunc(words[:len(words)-1], func(w string) bool { return lists["aboutbefore"][w] }))
}

// isID reports whether the words of a weak name are those of a number, such as user_id.
func isID(words []string) bool {
	n := len(words)
	return n > 1 && strings.TrimSuffix(words[n-1], "s") == "id" && !lists["secretid"][words[n-2]] && !slices.Contains(words, "key")
}

// splitWords returns the words of an identifier in lower case.
func splitWords(ident string) []string {
	words := make([]string, 0, 4)
	for w := range wordsOf(ident) {
		words = append(words, strings.ToLower(w))
	}
	return words
}

func lastWord(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// lastWordOf returns the last word of an identifier in lower case, or "".
func lastWordOf(ident string) (final string) {
	for w := range wordsOf(ident) {
		final = w
	}
	return strings.ToLower(final)
}

// wordsOf yields the words of an identifier as they are spelled.
func wordsOf(ident string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := 0
		for i := range len(ident) {
			mark := !isAlnum(ident[i])
			if !mark && (i == begin || !startsWord(ident, i)) {
				continue
			}
			if begin < i && !yield(ident[begin:i]) {
				return
			}
			if begin = i; mark {
				begin++
			}
		}
		if begin < len(ident) {
			yield(ident[begin:])
		}
	}
}

// startsWord reports whether the capital at i > 0 begins a word.
func startsWord(ident string, i int) bool {
	return isUpper(ident[i]) && (!isUpper(ident[i-1]) || i+1 < len(ident) && isLower(ident[i+1]))
}

// isConstant reports whether ident is spelled like a constant, such as an option.
func isConstant(ident string) bool {
	ident = ident[strings.LastIndexByte(ident, '.')+1:]
	return strings.IndexByte(ident, '_') > 0 && strings.ToUpper(ident) == ident
}

// isFlag reports whether the identifier at a is a flag of a command line.
func isFlag(s string, a int) bool {
	return byteAt(s, a) == '-' || byteAt(s, a-1) == '-'
}
