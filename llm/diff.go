package llm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
)

const (
	// maxLineBytes is how much of one line the model is shown. A longer line is
	// data rather than code, and would crowd out the rest.
	maxLineBytes    = 2_000
	maxHeadingBytes = 200
)

// A file is one file of the change as the model is shown it.
type file struct {
	path  string // as findings name it
	shown string // path as the model is told it
	kind  string // action and type
	hunks []hunk
	cut   bool // the rest of a line is not shown
	// headSize is the number of tokens of its head, 0 if not counted yet.
	headSize int
}

// A hunk is a run of consecutive lines.
type hunk struct {
	heading string // what the diff says after the second @@
	lines   []line
	// headSize is the number of tokens of its head, 0 if not counted yet.
	headSize int
}

// part is h with some of its lines.
func (h hunk) part(lines []line) hunk { return hunk{h.heading, lines, h.headSize} }

// A line is one line of a hunk.
type line struct {
	mark   byte // blank, + or -
	number int  // in the new content; 0 for a removed line
	text   string
	size   int // in tokens, as it is rendered; 0 if not counted yet
}

func newFile(f redaction.File) (*file, error) {
	out := &file{
		path:  f.Path.String(),
		shown: visible(f.Path.String()),
		kind:  visible(string(f.Action) + ", " + f.Type.String()),
	}
	err := out.parse(f.Diff.String())
	return out, err
}

// visible writes what cannot be seen as its number, so that no text holds a
// message that only a model reads, and none passes for a line of ours.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if unseen(r) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// unseen reports control and format characters, the line ends that only some
// programs obey, and the selectors that can carry bytes. Tabs, the mark that
// begins files, and the joiners that scripts and emoji need stay.
func unseen(r rune) bool {
	switch r {
	case '\t', '\ufeff', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r >= 0xe0100 && r <= 0xe01ef
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@ ?(.*)$`)

// parse reads a unified diff without file headers. Counts in hunk headers are
// not needed: the first byte of a line says what it is.
func (f *file) parse(diff string) error {
	next := 0 // number of the next line of the new content
	for s := range strings.Lines(diff) {
		s = strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
		if m := hunkHeader.FindStringSubmatch(s); m != nil {
			next, _ = strconv.Atoi(m[1])
			heading, _ := clip(visible(m[2]), maxHeadingBytes, "text")
			f.hunks = append(f.hunks, hunk{heading: heading})
			continue
		}
		l, ok := parseLine(s)
		if !ok || len(f.hunks) == 0 {
			return failure.Errorf(failure.InvariantViolated, "read diff: hunk %d has a line without a mark", len(f.hunks))
		}
		if l.mark == '\\' {
			continue // "\ No newline at end of file"
		}
		if l.mark != '-' {
			l.number = next
			next++
		}
		f.add(l)
	}
	return nil
}

func (f *file) add(l line) {
	var cut bool
	l.text, cut = clip(visible(l.text), maxLineBytes, "line")
	f.cut = f.cut || cut
	h := &f.hunks[len(f.hunks)-1]
	h.lines = append(h.lines, l)
}

// parseLine reads one line of a hunk. An empty one is an empty unchanged line
// whose blank was lost on the way.
func parseLine(s string) (l line, ok bool) {
	if s == "" {
		return line{mark: ' '}, true
	}
	if !strings.ContainsRune(` +-\`, rune(s[0])) {
		return line{}, false
	}
	return line{mark: s[0], text: s[1:]}, true
}

// clip cuts s to n bytes at most, at a rune border, and says so in the text.
func clip(s string, n int, what string) (clipped string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s [%s cut: %d bytes more]", s[:n], what, len(s)-n), true
}
