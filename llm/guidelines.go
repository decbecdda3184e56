package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review/rules"
)

// maxRulesTokens bounds the rules in a prompt: some dozen packs.
const maxRulesTokens = 4_000

// guidelines are the rules of an installation, as they may be sent.
type guidelines struct {
	book  *rules.Book
	texts map[string]string // by the name of the pack; redacted
}

// newGuidelines passes the packs of book, which may be nil, through redaction,
// like everything that reaches the model.
func newGuidelines(redact func(string) (redaction.Text, error), book *rules.Book) (*guidelines, error) {
	if book == nil {
		book = &rules.Book{}
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

// packOf names the pack that counts for a file, empty if none does.
func (g *guidelines) packOf(path string) string {
	pack, _, _ := g.book.For(path)
	return pack.Name
}

// A guide is the rules for one change.
type guide struct {
	packs []string // in the order in which they are tried
	text  string
	// left are the packs that found no room.
	left []string
}

// guide chooses the packs that count for files, those of the most files first
// while they fit limit tokens. It is the same for all calls of a review, so that
// they begin alike.
func (g *guidelines) guide(files []*file, limit int) guide {
	count := map[string]int{}
	for _, f := range files {
		if pack, _, ok := g.book.For(f.path); ok {
			count[pack.Name]++
		}
	}
	chosen := slices.DeleteFunc(g.book.Packs(), func(p rules.Pack) bool { return count[p.Name] == 0 })
	byCount := slices.Clone(chosen)
	slices.SortStableFunc(byCount, func(a, b rules.Pack) int { return cmp.Compare(count[b.Name], count[a.Name]) })
	var out guide
	fits := map[string]bool{}
	limit = min(limit, maxRulesTokens)
	for _, p := range byCount {
		if n := countTokens(g.texts[p.Name]); n <= limit {
			fits[p.Name] = true
			limit -= n
		} else {
			out.left = append(out.left, p.Name)
		}
	}
	var text strings.Builder
	for _, p := range chosen {
		if fits[p.Name] {
			out.packs = append(out.packs, p.Name)
			fmt.Fprintf(&text, "\n%s", g.texts[p.Name])
		}
	}
	out.text = text.String()
	return out
}
