// Package fix checks the replacements that a model suggests for the code of its
// findings, against the lines of the new text that the reviewer was shown. It applies
// them in memory only.
//
// A checked replacement applies: the text has the quoted lines. It changes only them,
// keeps the indentation and the line ends, and holds no secret. A replacement in Go,
// JSON, YAML or XML leaves text that parses (syntax.go); one in another language opens
// and closes as many brackets as the lines that it replaces.
package fix

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"

	"github.com/criticizer/criticizer/review"
)

// A Text has the known lines of a file by their number, without line feeds.
type Text map[int]string

// Read returns the lines of the new text that a diff shows.
func Read(diff string) Text {
	t := Text{}
	for l := range review.DiffLines(diff) {
		if l.Mark == ' ' || l.Mark == '+' {
			t[l.Number] = l.Text
		}
	}
	return t
}

// Add adds lines from the given number on.
func (t Text) Add(number int, lines string) {
	for line := range strings.Lines(lines) {
		t[number] = strings.TrimSuffix(line, "\n")
		number++
	}
}

// maxShown bounds the lines on each side of a replacement that are read with it.
const maxShown = 400

// adjacent returns the known lines from a number on, in steps of 1 or -1.
func (t Text) adjacent(number, step int) (lines []string) {
	for len(lines) < maxShown {
		line, ok := t[number]
		if !ok {
			break
		}
		lines = append(lines, line)
		number += step
	}
	return lines
}

// Check returns f with its replacement checked, or without it and with the reason; a
// finding without a replacement has none. secrets returns the number of secrets and of
// placeholders in a text.
func (t Text) Check(f review.Finding, secrets func(string) int) (review.Finding, review.DropReason) {
	code := f.Replacement
	f.Replacement, f.ReplacementChecked = "", false
	if code == "" {
		return f, ""
	}
	count := f.EndLine - f.StartLine + 1
	old := t.adjacent(f.StartLine, 1)
	old = old[:max(0, min(count, len(old)))]
	if f.StartLine < 1 || len(old) == 0 || len(old) < count || !slices.Equal(codeLines(old), codeLines(strings.Split(f.Quote, "\n"))) {
		return f, review.DropFixPlace
	}
	lines, ok := lineEnds(old, strings.Split(code, "\n"))
	if !ok || !indented(old, lines, t) {
		return f, review.DropFixShape
	}
	before, after := t.adjacent(f.StartLine-1, -1), t.adjacent(f.EndLine+1, 1)
	slices.Reverse(before)
	was, is := text(before, old, after), text(before, lines, after)
	quote := strings.ReplaceAll(strings.Join(old, "\n"), "\r", "")
	switch {
	case quote == strings.ReplaceAll(strings.Join(lines, "\n"), "\r", ""):
		return f, review.DropNoChange
	case repeats(before, old, lines, after):
		return f, review.DropFixOther
	case secrets(code) > 0 || secrets(is) > min(secrets(was), math.MaxInt-1):
		return f, review.DropFixSecret
	case !parses(f.Path, before, old, lines, after):
		return f, review.DropFixSyntax
	}
	f.Quote, f.Replacement, f.ReplacementChecked = quote, strings.Join(lines, "\n"), true
	return f, ""
}

func text(parts ...[]string) string { return strings.Join(slices.Concat(parts...), "\n") + "\n" }

// codeLines returns the lines that are not blank, without carriage returns.
func codeLines(lines []string) (out []string) {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimRight(l, "\r"))
		}
	}
	return out
}

// lineEnds returns lines with the line ends of old: a prompt shows no carriage returns,
// so a replacement has none. ok is false if lines has carriage returns that old does not
// have.
func lineEnds(old, lines []string) (out []string, ok bool) {
	end := ""
	if strings.HasSuffix(old[0], "\r") {
		end = "\r"
	}
	for _, l := range lines {
		bare := strings.TrimSuffix(l, "\r")
		if strings.Contains(bare, "\r") || bare != l && end == "" {
			return nil, false
		}
		out = append(out, bare+end)
	}
	return out, true
}

func indent(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// indented reports whether lines begin at the column of old, and use tabs or blanks as
// the text does.
func indented(old, lines []string, t Text) bool {
	if indent(lines[0]) != indent(old[0]) {
		return false
	}
	uses := map[byte]bool{}
	for _, l := range t {
		if in := indent(l); in != "" && in != l {
			uses[in[0]] = true
		}
	}
	return len(uses) != 1 || !slices.ContainsFunc(lines, func(l string) bool { return indent(l) != "" && !uses[l[0]] })
}

var word = regexp.MustCompile(`[\pL\pN]`)

// repeats reports whether lines have the line before or after old, blank ones aside: they
// were meant for more than the quoted lines.
func repeats(before, old, lines, after []string) bool {
	above, below := codeLines(before), codeLines(after)
	for _, near := range slices.Concat(above[max(0, len(above)-1):], below[:min(1, len(below))]) {
		same := func(l string) bool { return strings.TrimRight(l, "\r") == near }
		if word.MatchString(near) && slices.ContainsFunc(lines, same) && !slices.ContainsFunc(old, same) {
			return true
		}
	}
	return false
}

// A Line is a line of a small diff. Mark is blank, + or -.
type Line struct {
	Mark byte
	Text string
}

// Diff returns the checked replacement of f as a small diff, nil if f has none.
func Diff(f review.Finding) (shown []Line) {
	if !f.ReplacementChecked {
		return nil
	}
	for _, hunk := range textdiff.Hunks(f.Quote+"\n", strings.ReplaceAll(f.Replacement, "\r", "")+"\n") {
		for _, e := range hunk.Edits {
			shown = append(shown, Line{marks[e.Op], strings.TrimSuffix(e.Line, "\n")})
		}
	}
	return shown
}

var marks = [...]byte{diff.Match: ' ', diff.Delete: '-', diff.Insert: '+'}
