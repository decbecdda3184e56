package p4

import (
	"path"
	"regexp"
	"strings"
)

// maxHeadingLine is the longest line in bytes that can be a heading. Redaction cuts
// headings: a part of a secret may not be recognized.
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
