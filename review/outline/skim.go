package outline

import (
	"regexp"
	"slices"
	"strings"
)

// bodyHead matches a line at the margin that may begin a function. A class with a base or
// with parameters also has a bracket, but holds definitions.
var bodyHead = regexp.MustCompile(`^[\w$][^(]*\(`)
var container = regexp.MustCompile(`\b(?:class|interface|object|record|impl|trait|extension)\b`)

// skim returns text of the same lines without what takes most of the time to parse: the
// block comments and tables of data at the margin, and the bodies of functions at the margin
// that hold none of the lines, which are sorted.
func skim(text string, lines []int) string {
	all := strings.SplitAfter(text, "\n")
	blank := func(first, end int) {
		for i := first; i < end; i++ {
			all[i] = "\n"
		}
	}
	head := false // the last line at the margin that is not a brace may begin a function
	for i := 0; i < len(all); i++ {
		line := strings.TrimRight(all[i], " \t\r\n")
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		if strings.HasPrefix(line, "/*") {
			end := i
			for end < len(all) && !strings.Contains(all[end], "*/") {
				end++
			}
			if end < len(all) {
				if _, after, _ := strings.Cut(all[end], "*/"); strings.TrimSpace(after) == "" {
					blank(i, end+1)
				}
			}
			i = end
			continue
		}
		isTable := strings.HasSuffix(line, "= {")
		if line[0] != '{' {
			begin := bodyHead.FindString(line)
			head = begin != "" && !container.MatchString(begin)
		}
		if line[len(line)-1] != '{' || !head && !isTable {
			continue
		}
		// The body ends at the first line that begins with a brace, unless that line has more
		// text, or is in a string or a comment.
		end := i + 1
		for end < len(all) && all[end][:min(len(all[end]), 1)] != "}" {
			end++
		}
		if end == len(all) {
			break
		}
		at, _ := slices.BinarySearch(lines, i+1)
		isNeeded := at < len(lines) && lines[at] <= end+1
		body, last := strings.Join(all[i+1:end], ""), strings.TrimSpace(all[end])
		if !isNeeded && isClosed(body) && (head && last == "}" || isTable && !strings.Contains(body, "(")) {
			blank(i+1, end)
		}
		i, head = end, false
	}
	return strings.Join(all, "")
}

// isClosed reports whether no comment or string of several lines is open at the end of the
// code, as far as can be seen without a parser.
func isClosed(code string) bool {
	even := func(mark string) bool { return strings.Count(code, mark)%2 == 0 }
	return even("`") && even(`"""`) && even("'''") && strings.Count(code, "/*") == strings.Count(code, "*/") && !strings.Contains(code, `R"`)
}
