package p4

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// Diff returns the hunks of a unified diff as a review has them.
func Diff(path, before, after string, context int) string {
	return unified(before, after, context, headingsOf(path))
}

// unified returns the hunks of a unified diff with the given lines of context,
// without file headers. Every hunk header has both counts and, after them, the
// nearest heading above the hunk. Equal texts give "".
func unified(before, after string, context int, heading *regexp.Regexp) string {
	above := headings{is: heading, lines: splitLines(after)}
	var out strings.Builder
	for _, h := range hunks(before, after, context) {
		fmt.Fprintf(&out, "@@ -%s +%s @@%s\n", hunkRange(h.LineNoX, h.EndLineNoX), hunkRange(h.LineNoY, h.EndLineNoY), above.above(h.LineNoY))
		for _, e := range h.Edits {
			out.WriteByte(marks[e.Op])
			out.WriteString(e.Line)
			if !strings.HasSuffix(e.Line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return out.String()
}

var marks = [...]byte{diff.Match: ' ', diff.Delete: '-', diff.Insert: '+'}

// manyLines is the number of lines of both texts together up to which the shortest diff
// is searched for, in a time of n^1.5. In longer texts only the lines that occur once in
// each are aligned, in n log n. Over the 653 edits of the public Jam depot the search
// finds the minimum; the alignment alone marks 4% more lines.
const manyLines = 10_000

func hunks(before, after string, context int) []textdiff.Hunk[string] {
	options := []textdiff.Option{diff.Context(context), textdiff.IndentHeuristic()}
	if strings.Count(before, "\n")+strings.Count(after, "\n") > manyLines {
		options = append(options, diff.Fast())
	}
	return textdiff.Hunks(before, after, options...)
}

// hunkRange counts from 1, and from 0 for no lines, as GNU diff does.
func hunkRange(from, to int) string {
	return fmt.Sprintf("%d,%d", from+min(to-from, 1), to-from)
}

// An edit replaces lines [a, aEnd) of the old text by lines [b, bEnd) of the new
// one. Lines count from 0.
type edit struct{ a, aEnd, b, bEnd int }

// edits returns the edits that lead from one text to the other, in order.
func edits(before, after string) []edit {
	var all []edit
	for _, h := range hunks(before, after, 0) {
		all = append(all, edit{h.LineNoX, h.EndLineNoX, h.LineNoY, h.EndLineNoY})
	}
	return all
}

// splitLines keeps the line ends; only the last line may lack one.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// withEndsOf returns before with the byte order mark of after, and with the ends of those
// lines of after that are equal otherwise: a diff to after shows neither.
func withEndsOf(before, after string) string {
	before = withoutMark(before)
	if before != "" && strings.HasPrefix(after, byteOrderMark) {
		before = byteOrderMark + before
	}
	hasOneEnd := func(s string) bool { return strings.Count(s, "\r\n") == strings.Count(s, "\n") }
	if !strings.Contains(before, "\r\n") && !strings.Contains(after, "\r\n") || hasOneEnd(before) && hasOneEnd(after) {
		return before
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	old, lines := splitLines(before), splitLines(after)
	var aligned strings.Builder
	at := 0
	for _, e := range edits(plain(before), plain(after)) {
		aligned.WriteString(strings.Join(lines[at:e.b], "") + strings.Join(old[e.a:e.aEnd], ""))
		at = e.bEnd
	}
	return aligned.String() + strings.Join(lines[at:], "")
}

func withoutMark(s string) string { return strings.TrimPrefix(s, byteOrderMark) }

// maxHeadingLine is the longest line in bytes that can be a heading. Stage llm cuts headings, behind
// redaction: a part of a secret may not be recognized.
const maxHeadingLine = 640

// A headingPattern matches the lines that begin a function, a type or the like. It
// looks at one line, as git's patterns do; a wrong heading does little harm, since
// the code follows it.
type headingPattern struct {
	extensions string // separated by blanks
	is         *regexp.Regexp
}

var (
	headingPatterns = []headingPattern{
		{".py .pyi .rb .ex .exs", regexp.MustCompile(`^\s*(async\s+def|def|defp|class|module|defmodule)\b`)},
		{".cs .java .kt .kts .ts .tsx .js .jsx .mjs .cjs .php .swift .scala .dart .rs .groovy .vue", regexp.MustCompile(
			`^\s*([\w@<>\[\],?.()]+\s+)*(class|interface|struct|enum|record|namespace|trait|impl|object|extension|function|func|fun|fn|def)\b` +
				`|^\s*((public|private|protected|internal|static|abstract|async|final|sealed|override|virtual|export|default|readonly|get|set)\s+)+[^=;]*\(` +
				`|^\s*[\w$#]+\s*\([^;]*\)\s*(:\s*[^;={]+)?\{\s*$`)},
		{".sql .pks .pkb .prc", regexp.MustCompile(`(?i)^\s*(create|alter|drop|insert|update|delete|merge|with)\b`)},
		{".v .sv .svh .vh .vhd .vhdl", regexp.MustCompile(
			`(?i)^\s*(\w+\s*:\s*)?(module|macromodule|entity|architecture|process|always(_ff|_comb|_latch)?|initial|task|function|package|interface|class|component|property|sequence)\b`)},
	}
	// atMargin is for all other languages: lines that begin at the margin with a
	// letter and are not labels.
	atMargin = regexp.MustCompile(`^[\pL_$][^;]*[^:;\s]\s*$`)
	// control matches statements that look like a method.
	control = regexp.MustCompile(`^\s*(\}\s*)?(if|else|for|foreach|while|switch|catch|return|throw|new|do|try|using|lock|await|case|end)\b`)
)

// headingsOf returns the pattern for a file.
func headingsOf(depotPath string) *regexp.Regexp {
	if extension := strings.ToLower(path.Ext(depotPath)); extension != "" {
		for _, p := range headingPatterns {
			if strings.Contains(p.extensions+" ", extension+" ") {
				return p.is
			}
		}
	}
	return atMargin
}

// headings finds the heading above a line. Lines must be requested in ascending
// order.
type headings struct {
	is    *regexp.Regexp
	lines []string
	next  int // first line that was not examined
	last  string
}

// above returns the nearest heading above line n, which counts from 0, after a
// blank; empty if there is none.
func (h *headings) above(n int) string {
	for ; h.next < n; h.next++ {
		line := h.lines[h.next]
		if len(line) <= maxHeadingLine && h.is.MatchString(strings.TrimRight(line, "\r\n")) && !control.MatchString(line) {
			h.last = " " + strings.TrimSpace(line)
		}
	}
	return h.last
}
