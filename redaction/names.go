package redaction

import (
	"iter"
	"slices"
	"strings"
)

// maxName bounds an identifier on each side of the word that was found in it.
const maxName = 64

// name looks at the identifier around s[begin:end], which holds a telling
// word, and at what is assigned to it.
func (d *detector) name(begin, end int) {
	if begin < d.named {
		return
	}
	a := runBack(d.s, begin, &identSet, maxName)
	b := run(d.s, end, &identSet, maxName)
	d.named = b
	for b > end && strings.IndexByte(".-$", d.s[b-1]) >= 0 {
		b--
	}
	ident := d.s[a:b]
	n := nameRef{ident: ident, begin: a, end: b, strength: d.strengthOf(ident)}
	if strings.EqualFold(ident, "pwd") && n.lastField(d.s) {
		n.strength = strongName
	}
	if n.strength == noName {
		return
	}
	if n.strength == weakName && n.ident == "key" && endsFold(d.s[:a], "wifi ") {
		n.strength = mediumName
	}
	l, at := d.linkAfter(a, b)
	if (l == assigned || l == stated) && d.spokenPair(n, at) {
		return
	}
	if i := strings.LastIndexByte(ident, '.'); i > 0 && l == called && lists["compare"][strings.ToLower(ident[i+1:])] {
		n.ident, n.end, l = ident[:i], a+i, compared
	}
	if n.strength >= mediumName && l != compared && l != stated && l != fallback {
		l, at = d.elsewhere(n, l, at)
	}
	if l == unlinked || ident == "PASS" && d.s[b] == ':' { // the verdict of a test
		return
	}
	d.value(n, l, at)
}

// elsewhere looks for the value of a name in other places than behind it: in
// another attribute, in a sentence, among several values. l and at are what is
// behind it.
func (d *detector) elsewhere(n nameRef, l link, at int) (link, int) {
	s, a, b := d.s, n.begin, n.end
	if value, ok := d.attribute(a, b); ok {
		return paired, value
	}
	if a > 1 && quoteSet.has(s[a-1]) {
		if i := runBack(s, a-1, &settingGap, 4); strings.HasSuffix(s[:i], "name") || strings.HasSuffix(s[:i], "key") {
			d.settingBefore(n, i)
		}
		d.headerField(n, strings.TrimRight(s[max(0, a-maxChoice):a-1], "@ "))
	}
	if n.strength == strongName && n.isPassword() {
		if value, ok := spokenAfter(s, b); ok {
			return stated, value
		}
		d.spokenBefore(n)
	}
	return d.amongOthers(n, l, at)
}

// amongOthers looks for the value of a name that stands among others: in front of
// it, in a table, in a tuple, in the body of a function.
func (d *detector) amongOthers(n nameRef, l link, at int) (link, int) {
	s, a, b := d.s, n.begin, n.end
	before, after := byte(0), byte(0) // what stands around it, spaces before it aside
	i := runBack(s, a, &spaceOnly, 4)
	if i > 0 {
		before = s[i-1]
	}
	if b < len(s) {
		after = s[b]
	}
	if strings.IndexByte("=(,$", before) >= 0 || strings.HasSuffix(s[:i], " eq") || strings.HasSuffix(s[:i], " ne") {
		d.before(n, a)
	}
	if strings.IndexByte(separators, after) >= 0 || strings.IndexByte(separators, before) >= 0 || quoteSet.has(before) {
		d.table(a, b)
	}
	if before == ',' || after == ',' {
		if value, several := d.tupleAt(a, b); several && value > 0 {
			return assigned, value
		} else if several {
			return unlinked, 0
		}
	}
	if l == unlinked || l == spaced {
		if j := gap(s, b); j < len(s) && (s[j] == '{' || s[j] == '<' || strings.HasPrefix(s[j:], "by lazy ")) {
			if value, ok := d.returned(b); ok {
				return assigned, value
			}
		}
	}
	return l, at
}

var spaceOnly = setOf(" ")

// attribute is where the value stands of an element that s[a:b], the value of
// one of its attributes, says is a secret: <input type="password" value="...">.
func (d *detector) attribute(a, b int) (at int, ok bool) {
	s := d.s
	if a == 0 || b >= len(s) || !quoteSet.has(s[a-1]) || s[b] != s[a-1] || a < 2 || s[a-2] != '=' {
		return 0, false
	}
	from := max(0, a-maxElement)
	open := strings.LastIndexAny(s[from:a], "<>\x01")
	end := strings.IndexAny(s[b:min(len(s), b+maxElement)], "<>\x01")
	if open < 0 || end < 0 || s[from+open] != '<' || s[b+end] != '>' {
		return 0, false
	}
	i := strings.Index(s[from+open:b+end], " value=")
	if i < 0 {
		return 0, false
	}
	at = from + open + i + len(" value=")
	return at, quoteSet.has(s[at])
}

// maxElement bounds the begin tag of an element on either side of a name.
const maxElement = 160

// A nameRef is an identifier that tells of a secret.
type nameRef struct {
	ident      string
	begin, end int
	strength   strength
}

// lastField reports whether n is a field of a connection string that comes
// after another: they are spelt with a capital, as names of code are not.
func (n nameRef) lastField(s string) bool {
	return n.begin > 0 && s[n.begin-1] == ';' && isUpper(n.ident[0])
}

// weigh is what ident promises: the best of its stems, less if the name is
// about the secret rather than of it.
func (d *detector) weigh(ident string) strength {
	folded := strings.ToLower(ident)
	switch {
	case strings.Contains(folded, "nopass"), strings.Contains(folded, "pubkey"), strings.Contains(folded, "usersecretsid"):
		return noName
	case folded == "chpasswd", ident == "PWD", ident == "OLDPWD":
		return noName
	case folded == "pwd":
		return mediumName // a password, or where one is
	}
	words := splitWords(ident)
	best, vendor := noName, false
	d.all.each(ident, func(t trigger, _, _ int) {
		if t.kind != onName {
			return
		}
		n := &d.names[t.index]
		if (n.strength > best || n.strength == vendorName && !vendor) && n.in(folded, words) {
			best = max(best, n.strength)
			vendor = vendor || n.strength == vendorName
		}
	})
	if vendor && best == weakName {
		best = mediumName
	}
	if slices.Contains(words, "public") || slices.Contains(words, "pub") {
		return noName
	}
	if best >= mediumName && about(words) {
		return weakName
	}
	if best == weakName && !vendor && len(words) > 1 && isReference(folded, words) {
		return noName
	}
	return best
}

// in reports whether an identifier, in which the stem occurs, has it where it counts.
func (n *nameStem) in(folded string, words []string) bool {
	if !n.whole && !n.ending {
		return true
	}
	if n.whole && n.strength == strongName {
		return strings.TrimRight(words[len(words)-1], digits) == n.stem
	}
	for _, w := range words {
		if n.whole && (w == n.stem || strings.TrimRight(w, "0123456789") == n.stem) || n.ending && strings.HasSuffix(strings.TrimRight(w, digits), n.stem) {
			return true
		}
	}
	return n.whole && folded == n.stem
}

// about reports whether the words of a name say that it tells something about
// a secret: its last word does, or one of those that user interfaces use.
func about(words []string) bool {
	if len(words) < 2 {
		return false
	}
	final := words[len(words)-1]
	for _, stem := range []string{"password", "passwd", "secret", "token", "key"} {
		if rest, ok := strings.CutPrefix(final, stem); ok && rest != "" {
			final = rest
		}
	}
	if lists["about"][final] {
		return true
	}
	for _, w := range words[:len(words)-1] {
		switch w {
		case "label", "title", "tooltip", "placeholder", "mandatory", "invalid", "forgot", "show", "hide", "remove",
			"error", "err", "min", "max", "is", "has", "category", "unauthorized":
			return true
		}
	}
	return false
}

// isReference reports whether a name that promises little is that of something
// which only has a number or a digest, such as a node, a pin of one, a file.
func isReference(folded string, words []string) bool {
	switch words[len(words)-1] {
	case "guid", "uuid", "digest", "checksum", "integrity":
		return true
	case "id", "ids":
		switch words[len(words)-2] {
		case "session", "client", "app", "api", "access", "sess":
			return false
		}
		return !strings.Contains(folded, "key")
	}
	return false
}

// splitWords cuts an identifier into its words in lower case.
func splitWords(ident string) []string {
	words := make([]string, 0, 4)
	for w := range wordsOf(ident) {
		words = append(words, strings.ToLower(w))
	}
	return words
}

// wordsOf yields the words of an identifier as they are spelt.
func wordsOf(ident string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := 0
		for i := range len(ident) {
			c := ident[i]
			switch {
			case !isAlnum(c):
				if begin < i && !yield(ident[begin:i]) {
					return
				}
				begin = i + 1
			case i > begin && wordStarts(ident, i):
				if !yield(ident[begin:i]) {
					return
				}
				begin = i
			}
		}
		if begin < len(ident) {
			yield(ident[begin:])
		}
	}
}

// wordStarts reports whether the capital at i > 0 begins a word.
func wordStarts(ident string, i int) bool {
	return isUpper(ident[i]) && (!isUpper(ident[i-1]) || i+1 < len(ident) && isLower(ident[i+1]))
}
