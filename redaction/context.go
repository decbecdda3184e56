package redaction

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

// A Block is a [review.Block] whose texts are of type Text.
type Block struct {
	Tier review.Tier
	Kind review.BlockKind
	Path Text
	// Line is the number of the first line of Text, which has whole lines.
	Line int
	Text Text
	// For are the indexes of the files of the change that the block serves.
	For []int
	// Names are the names on changed lines that it defines, separated by blanks.
	Names Text
}

// A cutter cuts blocks out of whole files, one file at a time.
type cutter struct {
	names  names
	pl     *payload
	raw    []review.Block
	byPath map[string][]int // indexes of raw, until they are cut
	blocks []Block
}

func newCutter(names names, pl *payload, raw []review.Block) *cutter {
	c := &cutter{names: names, pl: pl, raw: raw, byPath: map[string][]int{}, blocks: append([]Block(nil), make([]Block, len(raw))...)}
	for i, b := range raw {
		c.byPath[b.Path] = append(c.byPath[b.Path], i)
	}
	return c
}

// from adds the blocks of a file to the payload, with what the whole file reveals masked.
func (c *cutter) from(path string, whole scanned) {
	indexes := c.byPath[path]
	if len(indexes) == 0 {
		return
	}
	delete(c.byPath, path)
	starts := []int{0}
	for at := 0; at < len(whole.text); starts = append(starts, at) {
		at = lex.LineEnd(whole.text, at)
	}
	for _, i := range indexes {
		b, to := c.raw[i], &c.blocks[i]
		first := min(max(b.Line-1, 0), len(starts)-1)
		side := wholeSide{shown: []shown{{starts[first], starts[min(first+max(b.Lines, 0), len(starts)-1)], 0}}}
		*to = Block{Tier: b.Tier, Kind: b.Kind, Line: b.Line, For: b.For}
		c.pl.add(formText, b.Path, &to.Path)
		c.pl.add(formText, strings.Join(b.Names, " "), &to.Names)
		c.pl.add(formText, whole.text[side.shown[0].from:side.shown[0].to], &to.Text)
		part := c.pl.parts[len(c.pl.parts)-1]
		part.spans = c.names.withoutPlaceholders(part.raw, side.inDiff(whole.spans))
	}
}

// scanContext adds the blocks of files that are not in the change. An error means that a
// block has no readable text.
func (p *Pipeline) scanContext(pl *payload, c *cutter, context review.Context) error {
	for _, source := range context.Sources {
		if len(c.byPath[source.Path]) == 0 {
			continue
		}
		text, err := source.Whole.Text()
		if err != nil {
			return err
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		c.from(source.Path, p.scanAll(pl, text, source.Path))
	}
	if len(c.byPath) > 0 {
		return fmt.Errorf("%d files have blocks and no text", len(c.byPath))
	}
	return nil
}
