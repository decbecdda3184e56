package llm

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// A file is one file of the change as it is shown to the model.
type file struct {
	path     string // as findings name it
	shown    string // path in the prompt
	kind     string // action and type; "" if the lines are not part of the change
	hunks    []hunk
	headSize int                  // tokens of the head
	coverage *review.FileCoverage // nil if the lines are not part of the change
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
	return out, out.parse(f.Diff.String())
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
	if l.mark == '-' {
		l.number = 0
	}
	l.text, l.cut = clip(visible(l.text), maxLineBytes, "line")
	l.size = countTokens(l.render())
	h := &f.hunks[len(f.hunks)-1]
	h.lines = append(h.lines, l)
}

// Bounds of rendered text. A longer text is cut, with a note.
const (
	maxAboutBytes   = 2_000 // description of a changelist, in every call; its jobs have as many
	maxJobBytes     = 1_100 // a job, of which several share the room
	maxLineBytes    = 2_000 // a longer line is usually data and would displace code
	maxHeadingBytes = 200
)

// about renders the description and jobs of a change, and the list of its files unless it
// is the only one. They are in every call: in small prompts, jobs and list have less room.
func about(c redaction.Change, limit int) string {
	text := described("description", c.Description.String(), min(maxAboutBytes, limit/4))
	var jobs, files strings.Builder
	for _, job := range c.Jobs {
		text, _ := clip(job.String(), maxJobBytes, "job")
		jobs.WriteString(text + "\n")
	}
	if jobs.Len() > 0 {
		text += described("jobs", jobs.String(), min(maxAboutBytes, limit/24))
	}
	for _, f := range c.Files {
		if !f.Skipped.IsDenied() && f.Skipped != review.SkipDenied {
			files.WriteString(listed(f) + "\n")
		}
	}
	if len(c.Files) > 1 {
		text += described("files of the changelist", files.String(), min(2*maxAboutBytes, limit/24))
	}
	return text
}

func described(head, text string, limit int) string {
	clipped, _ := clip(head+"\n"+quoteLines(strings.TrimSpace(text)), limit, "text")
	return strings.TrimSuffix(clipped, "\n") + "\n"
}

// listed renders a file in the list of files. It leaves out the size of a file that is
// shown, so that an edit of the file changes no cached prompt about other files.
func listed(f redaction.File) string {
	text := string(f.Action) + " " + f.Path.String()
	if from := f.FromPath.String(); from != "" {
		text += " from " + from
	}
	if f.Skipped != "" {
		text += fmt.Sprintf(", %d bytes, not shown: %s", f.Size, f.Skipped)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// quoteLines puts "| " before every line of s, so that none can pass for a line of
// the prompt.
func quoteLines(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		out.WriteString("| " + visible(strings.TrimRight(l, "\r\n")) + "\n")
	}
	return out.String()
}

func (f *file) head() string {
	if !f.inChange() {
		return "context " + f.shown + "\n"
	}
	return "file " + f.shown + " (" + f.kind + ")\n"
}

func (h hunk) head() string { return "@@ " + h.heading + "\n" }

func (l line) render() string {
	if l.mark == '-' {
		return "       - " + l.text + "\n"
	}
	return fmt.Sprintf("%6d %c %s\n", l.number, l.mark, l.text)
}

// visible shows invisible characters, so that no text holds a message that only a model
// reads, or ends a line of the prompt.
func visible(s string) string { return strings.ReplaceAll(plain.Show(s), "\n", "[U+000A]") }

// clip cuts s to at most n bytes, at a rune boundary, and appends a note.
func clip(s string, n int, what string) (clipped string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s [%s cut: %d bytes more]", s[:n], what, len(s)-n), true
}
