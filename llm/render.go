package llm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Bounds of rendered text. A longer text is cut, with a note.
const (
	maxAboutBytes   = 2_000 // description of a changelist, in every call; its jobs have as many
	maxLineBytes    = 2_000 // a longer line is usually data and would displace code
	maxHeadingBytes = 200
)

// about renders the description and jobs of a change, and the list of its files unless it
// is the only one. They are in every call: in small prompts, jobs and list have less room.
func about(c redaction.Change, limit int) string {
	text := described("description", c.Description.String(), min(maxAboutBytes, limit/4))
	var jobs, files strings.Builder
	for _, job := range c.Jobs {
		jobs.WriteString(job.String() + "\n")
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

// visible replaces invisible characters by their code points, so that no text
// holds a message that only a model reads, or ends a line of the prompt.
func visible(s string) string { return plain.Show(s, invisible) }

// invisible reports control and format characters, the line ends of Unicode, and
// the variation selectors, which can encode bytes. Tabs, the byte order mark,
// and the joiners that scripts and emoji need are kept.
func invisible(r rune) bool {
	switch r {
	case '\t', '\ufeff', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r >= 0xe0100 && r <= 0xe01ef
}

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
