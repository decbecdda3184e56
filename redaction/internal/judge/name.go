package judge

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A Strength is how reliably a name shows that its value is a secret.
type Strength uint8

// The strengths, from none to one whose value is a secret unless it is recognizably something else.
const (
	NoName Strength = iota
	Vendor
	Weak
	Medium
	Strong
)

var strengths = map[string]Strength{"strong": Strong, "medium": Medium, "weak": Weak, "vendor": Vendor}

// A Name is an identifier that may name a secret, and where it is in a text.
type Name struct {
	Ident      string
	Begin, End int
	Strength   Strength
	// IsPair is set if the name announces a user and a password together.
	IsPair bool
	// Rule gives the strength.
	Rule string
}

// A stem is what a name rule looks for in identifiers.
type stem struct {
	rule, text string
	strength   Strength
	// A whole stem has to be a word of the identifier, an ending one the end of a word.
	whole, ending bool
}

// Names are the name rules.
type Names struct {
	stems []stem
	all   *lex.Words
	// Classes has the classes of placeholders.
	Classes map[string]bool
}

// NewNames returns the names without a rule.
func NewNames() *Names {
	n := &Names{Classes: map[string]bool{}}
	for class := range lists["classes"] {
		n.Classes[class] = true
	}
	return n
}

// A Subject is the name of a rule and what its example is about.
type Subject struct{ Rule, Text string }

// Add reads "name STRENGTH STEM..." without the first word.
func (n *Names) Add(f []string) ([]Subject, error) {
	if len(f) < 2 || strengths[f[0]] == NoName {
		return nil, errors.New("want \"name STRENGTH STEM...\" with the strength strong, medium, weak or vendor")
	}
	var out []Subject
	for _, w := range f[1:] {
		text, whole := strings.CutPrefix(w, "=")
		text, ending := strings.CutSuffix(strings.ReplaceAll(text, "~", " "), "$")
		if len(text) < 2 {
			return nil, fmt.Errorf("the stem %q is shorter than 2 bytes", text)
		}
		whole = whole || strengths[f[0]] == Vendor && len(text) <= 5
		n.stems = append(n.stems, stem{"name " + text, text, strengths[f[0]], whole, ending})
		out = append(out, Subject{text, text})
	}
	return out, nil
}

// Drop removes the rules that off reports.
func (n *Names) Drop(off func(rule string) bool) {
	n.stems = slices.DeleteFunc(n.stems, func(s stem) bool { return off(s.rule) })
}

// Index has to be called after the last rule was added.
func (n *Names) Index() {
	var words []lex.Word
	for i, s := range n.stems {
		words = append(words, lex.Word{Text: s.text, Index: i})
	}
	n.all = lex.NewWords(words)
}

// Words returns the stems.
func (n *Names) Words() (words []string) {
	for _, s := range n.stems {
		words = append(words, s.text)
	}
	return words
}

// Of returns the name ident.
func (n *Names) Of(ident string) Name {
	if strings.IndexFunc(ident, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		if i := slices.IndexFunc(n.stems, func(s stem) bool { return strings.EqualFold(s.text, ident) }); i >= 0 {
			return Name{Ident: "password", Strength: n.stems[i].strength, Rule: n.stems[i].rule}
		}
	}
	strength, rule := n.rate(ident)
	return Name{Ident: ident, Strength: strength, IsPair: lists["pair"][lastWordOf(ident)], Rule: rule}
}

// seed keys the caches of names.
var seed = maphash.MakeSeed()

const cacheBits = 11

// A Cache keeps names, because identifiers occur often.
type Cache struct {
	names  [1 << cacheBits]Name
	idents [1 << cacheBits]string
}

// Of is like [Names.Of].
func (c *Cache) Of(n *Names, ident string) Name {
	i := maphash.String(seed, ident) >> (64 - cacheBits)
	if c.idents[i] != ident {
		c.idents[i] = strings.Clone(ident)
		c.names[i] = n.Of(c.idents[i])
	}
	return c.names[i]
}

// IsPassword reports whether n names a password and not something about it.
func (n Name) IsPassword() bool {
	return lists["password"][strings.TrimRight(lastWordOf(n.Ident), lex.Digits)]
}

// IsPlural reports whether n names several secrets, such as passwords.
func (n Name) IsPlural() bool {
	final := lastWordOf(n.Ident)
	return n.Strength == Strong && (lists["plural"][final] || strings.HasSuffix(final, "passwords")) || lists["accounts"][final]
}

// Class returns the class of the secrets that n names.
func (n Name) Class() string {
	folded := strings.ToLower(n.Ident)
	i := slices.IndexFunc(heads["class"], func(stem string) bool { return strings.Contains(folded, stem) })
	switch {
	case i >= 0 && heads["class"][i][0] != 'p':
		return heads["class"][i]
	case i >= 0 || n.Strength == Strong:
		return "password"
	}
	return "credential"
}

// rate returns the highest strength of the stems in ident and its rule. The strength
// is lower if the name is about the secret and not the name of the secret.
func (n *Names) rate(ident string) (Strength, string) {
	folded := strings.ToLower(ident)
	if lex.ContainsAny(folded, heads["noname"]) {
		return NoName, ""
	}
	words := SplitWords(ident)
	best, vendor := n.bestStem(ident, folded, words)
	if best == nil || slices.Contains(words, "public") || slices.Contains(words, "pub") {
		return NoName, ""
	}
	strength := best.strength
	switch {
	case vendor != nil && strength == Weak:
		best, strength = vendor, Medium
	case strength == Weak && len(words) > 1 && strings.TrimSuffix(lastWord(words), "s") == "id" && !lists["secretid"][words[len(words)-2]] && !slices.Contains(words, "key"):
		return NoName, "" // a number, such as user_id
	}
	if describesSecret(words) {
		strength = min(strength, Weak)
	}
	return strength, best.rule
}

// bestStem returns the strongest stem of ident, and the longest of these. vendor is
// one that is a service, or nil.
func (n *Names) bestStem(ident, folded string, words []string) (best, vendor *stem) {
	n.all.Each(ident, func(w *lex.Word, _, _ int) {
		s := &n.stems[w.Index]
		better := best == nil || s.strength > best.strength || s.strength == best.strength && len(s.text) > len(best.text)
		if !better && (s.strength != Vendor || vendor != nil) || !s.in(folded, words) {
			return
		}
		if s.strength == Vendor {
			vendor = s
		}
		if better {
			best = s
		}
	})
	return best, vendor
}

// in reports whether the stem, which is in an identifier, counts where it is.
func (s *stem) in(folded string, words []string) bool {
	if !s.whole && !s.ending {
		return true
	}
	if s.whole && s.strength == Strong {
		return strings.TrimRight(lastWord(words), lex.Digits) == s.text
	}
	return folded == s.text || slices.ContainsFunc(words, func(w string) bool {
		core := strings.TrimRight(w, lex.Digits)
		return w == s.text || core == s.text || s.ending && strings.HasSuffix(core, s.text)
	})
}

// describesSecret reports whether a name is about a secret, such as password_label.
func describesSecret(words []string) bool {
	if i := slices.IndexFunc(words, func(w string) bool { return w == "of" || w == "for" }); i > 0 && len(words) > 4 {
		last := slices.Index(words, "password") // the_password_of_the_main_region
		if j := max(i, last); j == last {
			return false
		}
		words = words[:i]
	}
	final := lastWord(words)
	for _, stem := range []string{"password", "passwd", "secret", "token", "key"} {
		if rest, ok := strings.CutPrefix(final, stem); ok && rest != "" {
			final = rest
		}
	}
	return final != lastWord(words) && lists["about"][final] || len(words) > 1 && (lists["about"][final] || slices.ContainsFunc(words[:len(words)-1], func(w string) bool { return lists["aboutbefore"][w] }))
}

// SplitWords returns the words of an identifier in lower case.
func SplitWords(ident string) []string {
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
func lastWordOf(ident string) string { return lastWord(SplitWords(ident)) }

// wordsOf yields the words of an identifier as they are spelled.
func wordsOf(ident string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := 0
		for i := range len(ident) {
			mark := !lex.IsAlnum(ident[i])
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
	return lex.IsUpper(ident[i]) && (!lex.IsUpper(ident[i-1]) || i+1 < len(ident) && lex.IsLower(ident[i+1]))
}

// IsConstant reports whether ident is spelled like a constant, such as an option.
func IsConstant(ident string) bool {
	ident = ident[strings.LastIndexByte(ident, '.')+1:]
	return strings.IndexByte(ident, '_') > 0 && strings.ToUpper(ident) == ident
}

// IsFlag reports whether the identifier at a is a flag of a command line.
func IsFlag(s string, a int) bool {
	return lex.ByteAt(s, a) == '-'
}
