package llmsim

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A file is one file of the change in a prompt.
type file struct {
	path  string
	ext   string // lower case, with its dot
	lines []line
}

// A line is one line of a change. Lines of other hunks are apart from each
// other by a line with mark '@'.
type line struct {
	mark   byte // blank, +, - or @
	number int
	text   string
}

var (
	beginLine = regexp.MustCompile(`(?m)^=== begin change ([0-9a-f]+) ===\n`)
	fileLine  = regexp.MustCompile(`^file (.+) \([^()]*\)$`)
	codeLine  = regexp.MustCompile(`^ *(\d+) ([ +]) (.*)$`)
	oldLine   = regexp.MustCompile(`^ {7}- (.*)$`)
)

// parse reads the change out of a prompt, by the format the prompt explains.
func parse(prompt string) []file {
	m := beginLine.FindStringSubmatchIndex(prompt)
	if m == nil {
		return nil
	}
	body, _, _ := strings.Cut(prompt[m[1]:], "=== end change "+prompt[m[2]:m[3]]+" ===")
	var files []file
	for s := range strings.SplitSeq(body, "\n") {
		if f := fileLine.FindStringSubmatch(s); f != nil {
			files = append(files, file{path: f[1], ext: strings.ToLower(path.Ext(f[1]))})
		} else if l, ok := parseLine(s); ok && len(files) > 0 {
			last := &files[len(files)-1]
			last.lines = append(last.lines, l)
		}
	}
	return files
}

func parseLine(s string) (line, bool) {
	if strings.HasPrefix(s, "@@") {
		return line{mark: '@'}, true
	}
	if m := codeLine.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		return line{mark: m[2][0], number: n, text: m[3]}, err == nil
	}
	if m := oldLine.FindStringSubmatch(s); m != nil {
		return line{mark: '-', text: m[1]}, true
	}
	return line{}, false
}
