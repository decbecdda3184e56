package llm

import (
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A file is one file of the change as it is shown to the model.
type file struct {
	path     string // as findings name it
	shown    string // path in the prompt
	kind     string // action and type; "" if the lines are not part of the change
	hunks    []hunk
	headSize int // tokens of the head
}

// A hunk is a sequence of consecutive lines.
type hunk struct {
	heading  string // the text after the second @@
	lines    []line
	headSize int // tokens of the head
}

// part returns h with some of its lines.
func (h hunk) part(lines []line) hunk { return hunk{h.heading, lines, h.headSize} }

type line struct {
	mark   byte // blank, + or -
	number int  // in the new content; 0 for a removed line
	text   string
	row    int  // in the diff
	cut    bool // its end is not shown
	size   int  // tokens of the rendered line
}

func newFile(path, kind string) *file {
	f := &file{path: path, shown: visible(path), kind: visible(kind)}
	f.headSize = countTokens(f.head())
	return f
}

// inChange reports whether the lines of f are part of the change, and not around it.
func (f *file) inChange() bool { return f.kind != "" }

// parseFile returns a file of the change with its lines.
func parseFile(f redaction.File) (*file, error) {
	out := newFile(f.Path.String(), string(f.Action)+", "+f.Type.String())
	err := out.parse(f.Diff.String())
	return out, err
}

// parse adds the lines of a diff.
func (f *file) parse(diff string) error {
	for l := range review.DiffLines(diff) {
		text := strings.TrimSuffix(l.Text, "\r")
		switch {
		case l.Mark == '@':
			f.begin(text)
		case l.Mark == 0 || len(f.hunks) == 0:
			return failure.Errorf(failure.InvariantViolated, "read diff: hunk %d has a line without a mark", len(f.hunks))
		case l.Mark == '-':
			f.add(line{mark: '-', row: l.Row, text: text})
		default:
			f.add(line{mark: l.Mark, number: l.Number, row: l.Row, text: text})
		}
	}
	return nil
}

func (f *file) begin(heading string) {
	var h hunk
	h.heading, _ = clip(visible(heading), maxHeadingBytes, "text")
	h.headSize = countTokens(h.head())
	f.hunks = append(f.hunks, h)
}

func (f *file) add(l line) {
	l.text, l.cut = clip(visible(l.text), maxLineBytes, "line")
	l.size = countTokens(l.render())
	h := &f.hunks[len(f.hunks)-1]
	h.lines = append(h.lines, l)
}
