package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/rules"
)

// maxRulesTokens bounds the rules in a prompt: about a dozen packs.
const maxRulesTokens = 4_000

// guidelines are the rule packs of an installation, redacted.
type guidelines struct {
	book  *rules.Set
	texts map[string]string // redacted, by the name of the pack
}

// newGuidelines redacts the packs of book, which may be nil.
func newGuidelines(redact func(string) (redaction.Text, error), book *rules.Set) (*guidelines, error) {
	if book == nil {
		book = &rules.Set{}
	}
	g := &guidelines{book, map[string]string{}}
	for _, pack := range book.Packs() {
		text, err := redact(pack.Text())
		if err != nil {
			return nil, fmt.Errorf("redact rules %s (%s): %w", pack.Name, pack.Origin, err)
		}
		g.texts[pack.Name] = text.String()
	}
	return g, nil
}

// with returns g with the packs of teams, and how each of their files was used. One that
// is invalid is left out: a team must not be able to stop the reviews of others.
func (g *guidelines) with(redact func(string) (redaction.Text, error), files []redaction.RuleFile) (*guidelines, []review.RuleSource, error) {
	var sources []review.RuleSource
	book := g.book
	for _, f := range files {
		source := review.RuleSource{Path: f.Path.String(), Revision: f.Revision, Digest: f.Digest}
		if f.Revision > 0 {
			next, err := book.WithTeam(fmt.Sprintf("%s#%d", source.Path, f.Revision), f.Text.String())
			if source.Invalid = err != nil; err == nil {
				book = next
			}
		}
		sources = append(sources, source)
	}
	if book == g.book {
		return g, sources, nil
	}
	out, err := newGuidelines(redact, book)
	return out, sources, err
}

// packsOf returns the names of the packs for a file, joined by +, "" for none.
func (g *guidelines) packsOf(path string) string {
	var names []string
	for _, p := range g.book.For(path) {
		names = append(names, p.Name)
	}
	return strings.Join(names, "+")
}

// A guide is the rules for one change.
type guide struct {
	packs []string // in order of precedence
	text  string
	left  []string // packs without room
}

// guide selects the packs for files, as many as fit in limit tokens. Packs that apply to
// more files come first. All calls of a review have the same guide, so that providers can
// cache their common prefix.
func (g *guidelines) guide(files []*file, limit int) (out guide) {
	count := map[string]int{}
	for _, f := range files {
		for _, pack := range g.book.For(f.path) {
			count[pack.Name]++
		}
	}
	chosen := slices.DeleteFunc(g.book.Packs(), func(p rules.Pack) bool { return count[p.Name] == 0 })
	byCount := slices.Clone(chosen)
	slices.SortStableFunc(byCount, func(a, b rules.Pack) int { return cmp.Compare(count[b.Name], count[a.Name]) })
	limit = min(limit, maxRulesTokens)
	for _, p := range byCount {
		if n := countTokens(g.texts[p.Name]); n <= limit {
			limit -= n
		} else {
			out.left = append(out.left, p.Name)
		}
	}
	for _, p := range chosen {
		if !slices.Contains(out.left, p.Name) {
			out.packs = append(out.packs, p.Name)
			out.text += "\n" + g.texts[p.Name]
		}
	}
	return out
}
