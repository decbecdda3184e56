package p4

import (
	"path"
	"regexp"
	"strings"
)

// maxHeading is how many bytes of a heading are shown.
const maxHeading = 160

// A heading pattern tells the lines that begin a function, type or the like.
// They are guesses by the look of one line, as git's are; a wrong one misleads
// nobody, for the code itself is shown below it.
type headingPattern struct {
	extensions string // by blanks
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
	// atMargin is for all other languages: what begins at the margin with a
	// letter, and is no label.
	atMargin = regexp.MustCompile(`^[\pL_$][^;]*[^:;\s]\s*$`)
	// control begins lines that have the look of a method.
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

// A headings finds the heading above a line; lines are asked for in order.
type headings struct {
	is    *regexp.Regexp
	lines []string
	next  int // not looked at
	last  string
}

// above returns the nearest heading above line n, which counts from 0, with a
// blank before it; empty if there is none.
func (h *headings) above(n int) string {
	for ; h.next < n; h.next++ {
		line := h.lines[h.next]
		if len(line) <= 4*maxHeading && h.is.MatchString(strings.TrimRight(line, "\r\n")) && !control.MatchString(line) {
			h.last = " " + cutText(strings.TrimSpace(line), maxHeading)
		}
	}
	return h.last
}
