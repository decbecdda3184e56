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
	// contextOfCheck is all, and the calls of edited functions: the mode of verifications.
	contextOfCheck ContextMode = "check"
)

func (m ContextMode) covers(t review.Tier) bool {
	return m == contextOfCheck || m == ContextAll && t != review.TierCalls || m == ContextFile && t == review.TierChange
}

// A block is code around the change: lines of one file in one hunk.
type block struct {
	*file
	tier  review.Tier
	serve []*file
}

// newBlocks returns the context of c for the given files, the most important block first.
func newBlocks(c redaction.Change, files []*file) (blocks []*block) {
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

// contextOf returns the blocks for c that mode selects and that fit into room tokens,
// except the blocks in shown. A block that does not fit is left out, and the next one is
// tried.
func (run *run) contextOf(c chunk, mode ContextMode, room int, shown chunk) (context chunk, use review.ContextUse) {
	for _, b := range run.blocks {
		serves := func(s section) bool { return slices.Contains(b.serve, s.file) }
		holds := func(s section) bool {
			return s.file.path == b.path && slices.ContainsFunc(s.hunks, func(h hunk) bool { return h.first() == b.hunks[0].first() })
		}
		switch size := (section{b.file, b.hunks}).tokens(); {
		case !mode.covers(b.tier), !slices.ContainsFunc(c, serves), slices.ContainsFunc(shown, holds):
		case size > room:
			use.LeftOut++
		default:
			room -= size
			use.Shown++
			i := slices.IndexFunc(context, func(s section) bool { return s.file.path == b.path })
			if i < 0 {
				context = append(context, section{b.file, slices.Clone(b.hunks)})
				continue
			}
			context[i].hunks = append(context[i].hunks, b.hunks...)
			slices.SortStableFunc(context[i].hunks, func(x, y hunk) int { return x.first() - y.first() })
		}
	}
	return context, use
}

// first returns the number of the first line of h, 0 for none.
func (h hunk) first() int {
	if len(h.lines) == 0 {
		return 0
	}
	return h.lines[0].number
}
