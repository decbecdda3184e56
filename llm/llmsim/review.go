package llmsim

import (
	"regexp"
	"slices"
	"strings"
)

// maxPerRule bounds the findings of one rule in one file: more of the same is noise.
const maxPerRule = 3

// A finding is one finding as the answer schema of the prompt has it.
type finding struct {
	Path        string  `json:"path"`
	Severity    string  `json:"severity"`
	Category    string  `json:"category"`
	Confidence  float64 `json:"confidence"`
	Title       string  `json:"title"`
	Explanation string  `json:"explanation"`
	Suggestion  string  `json:"suggestion"`
	Quote       string  `json:"quote"`
	Line        int     `json:"line"`
}

// A rule finds one kind of defect in added lines.
type rule struct {
	// exts lists the file types it knows; none means every type, comments included.
	exts []string
	// at matches the line, unless the line also matches but, or what the next
	// lines say excuses it.
	at, but *regexp.Regexp
	excused func(s string, next []string) bool

	severity, category string
	confidence         float64
	title              string
	explanation        string
	suggestion         string
}

// review applies all rules to the change in a prompt.
func review(prompt string) []finding {
	var found []finding
	for _, f := range parse(prompt) {
		for _, r := range rules {
			found = append(found, r.apply(f)...)
		}
	}
	return found
}

func (r rule) apply(f file) []finding {
	if len(r.exts) > 0 && !slices.Contains(r.exts, f.ext) {
		return nil
	}
	var found []finding
	for i, l := range f.lines {
		if l.mark != '+' || !r.matches(f, i) {
			continue
		}
		found = append(found, finding{
			Path: f.path, Severity: r.severity, Category: r.category, Confidence: r.confidence,
			Title: r.title, Explanation: r.explanation, Suggestion: r.suggestion, Quote: l.text, Line: l.number,
		})
		if len(found) == maxPerRule {
			break
		}
	}
	return found
}

func (r rule) matches(f file, i int) bool {
	s := f.lines[i].text
	switch {
	case !r.at.MatchString(s), r.but != nil && r.but.MatchString(s):
		return false
	case len(r.exts) > 0 && isComment(f.ext, s):
		return false
	}
	return r.excused == nil || !r.excused(s, after(f.lines, i))
}

// after returns the next lines of the new content, up to four, in the same hunk.
func after(lines []line, i int) []string {
	var next []string
	for _, l := range lines[i+1:] {
		if l.mark == '@' || len(next) == 4 {
			break
		}
		if l.mark != '-' {
			next = append(next, l.text)
		}
	}
	return next
}

func isComment(ext, s string) bool {
	s = strings.TrimSpace(s)
	if slices.Contains(hashComments, ext) {
		return strings.HasPrefix(s, "#")
	}
	return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*") || strings.HasPrefix(s, "*")
}
