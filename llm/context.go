package llm

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A ContextMode selects the code around the change that calls of one kind show.
type ContextMode string

// The context modes.
const (
	ContextNone ContextMode = "none"
	ContextFile ContextMode = "file" // from the files of the change
	ContextAll  ContextMode = "all"  // from files beside them, too
)

func (m ContextMode) covers(t review.Tier) bool {
	return m == ContextAll || m == ContextFile && t == review.TierChange
}

// A block is code around the change: lines of one file in one hunk.
type block struct {
	*file
	tier  review.Tier
	serve []*file
}

// newBlocks returns the context of c for the given files, the most important block first.
func newBlocks(c redaction.Change, files []*file) []*block {
	var blocks []*block
	for _, b := range c.Context {
		out := &block{file: newFile(b.Path.String(), ""), tier: b.Tier}
		for _, i := range b.For {
			if i >= 0 && i < len(files) && files[i] != nil {
				out.serve = append(out.serve, files[i])
			}
		}
		heading := string(b.Kind)
		if names := b.Names.String(); names != "" {
			heading += " of " + names
		}
		out.begin(heading)
		number := b.Line
		for s := range strings.Lines(b.Text.String()) {
			out.add(line{mark: ' ', number: number, text: strings.TrimRight(s, "\r\n")})
			number++
		}
		blocks = append(blocks, out)
	}
	return blocks
}

// tokens is the size of a block that shares its head with no other.
func (b *block) tokens() int { return section{b.file, b.hunks}.tokens() }

func (b *block) serves(c chunk) bool {
	return slices.ContainsFunc(c, func(s section) bool { return slices.Contains(b.serve, s.file) })
}

// contextOf returns the blocks for c that mode selects and that fit into room tokens,
// except the blocks in shown. A block that does not fit is left out, and the next one is
// tried.
func (run *run) contextOf(c chunk, mode ContextMode, room int, shown chunk) (context chunk, use review.ContextUse) {
	for _, b := range run.blocks {
		switch {
		case !mode.covers(b.tier) || !b.serves(c) || shown.holds(b):
		case b.tokens() > room:
			use.LeftOut++
		default:
			room -= b.tokens()
			use.Shown++
			context = context.with(b)
		}
	}
	return context, use
}

// with adds a block to the section of its file, in the order of the lines.
func (c chunk) with(b *block) chunk {
	i := slices.IndexFunc(c, func(s section) bool { return s.file.path == b.path })
	if i < 0 {
		return append(c, section{b.file, slices.Clone(b.hunks)})
	}
	c[i].hunks = append(c[i].hunks, b.hunks...)
	slices.SortStableFunc(c[i].hunks, func(x, y hunk) int { return x.first() - y.first() })
	return c
}

func (c chunk) holds(b *block) bool {
	return slices.ContainsFunc(c, func(s section) bool {
		return s.file.path == b.path && slices.ContainsFunc(s.hunks, func(h hunk) bool { return h.first() == b.hunks[0].first() })
	})
}

// first returns the number of the first line of h, 0 for none.
func (h hunk) first() int {
	if len(h.lines) == 0 {
		return 0
	}
	return h.lines[0].number
}
