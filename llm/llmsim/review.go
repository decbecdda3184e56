package llmsim

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed rules.yaml
var rulesFile []byte

// A Remark is what a rule and its findings say.
type Remark struct {
	Title       string  `yaml:"title" json:"title"`
	Severity    string  `yaml:"severity" json:"severity"`
	Category    string  `yaml:"category" json:"category"`
	Confidence  float64 `yaml:"confidence" json:"confidence"`
	Explanation string  `yaml:"explanation" json:"explanation"`
	Suggestion  string  `yaml:"suggestion" json:"suggestion"`
}

// A rule reports one kind of defect in added lines; see rules.yaml.
type rule struct {
	Remark  `yaml:",inline"`
	Files   *regexp.Regexp `yaml:"files"`
	Line    *regexp.Regexp `yaml:"line"`
	Not     *regexp.Regexp `yaml:"not"`
	Next    *regexp.Regexp `yaml:"next"`
	NotNear *regexp.Regexp `yaml:"not_near"`
	// Fix matches what With replaces in a reported line. Unset: no replacement.
	Fix  *regexp.Regexp `yaml:"fix"`
	With string         `yaml:"with"`
	// Hit and Miss are examples for the test, by file name.
	Hit  map[string][]string `yaml:"hit"`
	Miss map[string][]string `yaml:"miss"`
}

var rules = func() []rule {
	var file struct {
		Rules []rule `yaml:"rules"`
	}
	if err := yaml.Load(rulesFile, &file, yaml.WithKnownFields()); err != nil {
		panic("llmsim: rules.yaml: " + err.Error())
	}
	return file.Rules
}()

// maxPerRule bounds the findings of one rule in one file.
const maxPerRule = 3

// A finding is one finding in the answer schema of the prompt.
type finding struct {
	Path    string `json:"path"`
	Quote   string `json:"quote"`
	Line    int    `json:"line"`
	Trigger string `json:"trigger"`
	Remark
	Replacement string `json:"replacement"`
}

// review applies all rules to the change in a prompt.
func review(prompt string) []finding {
	found := []finding{} // encoded as [], not null
	for _, f := range parseChange(prompt) {
		for _, r := range rules {
			found = append(found, r.apply(f)...)
		}
	}
	return found
}

// comment matches the lines that a rule for some files does not apply to.
var comment = regexp.MustCompile(`^\s*(?://|/?\*|#)`)

func (r rule) apply(f changedFile) (found []finding) {
	if r.Files != nil && !r.Files.MatchString(strings.ToLower(f.path)) {
		return nil
	}
	for i, l := range f.lines {
		if l.mark != '+' || r.Files != nil && comment.MatchString(l.text) || !r.matches(l.text, following(f.lines, i)) {
			continue
		}
		f := finding{Path: f.path, Quote: l.text, Line: l.number, Remark: r.Remark}
		if r.Fix != nil && r.Fix.MatchString(l.text) {
			f.Replacement = r.Fix.ReplaceAllString(l.text, r.With)
		}
		if found = append(found, f); len(found) == maxPerRule {
			break
		}
	}
	return found
}

func (r rule) matches(s string, next []string) bool {
	switch {
	case !r.Line.MatchString(s), r.Not != nil && r.Not.MatchString(s):
		return false
	case r.Next != nil && (len(next) == 0 || !r.Next.MatchString(next[0])):
		return false
	}
	return r.NotNear == nil || !slices.ContainsFunc(append(next, s), r.NotNear.MatchString)
}

// following returns up to four lines of new content after line i, in its hunk.
func following(lines []line, i int) []string {
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

// A changedFile is one file of the change in a prompt.
type changedFile struct {
	path  string
	lines []line
}

// A line is a line of a change, or the head of a hunk with mark '@'.
type line struct {
	mark   byte // blank, +, - or @
	number int
	text   string
}

var (
	beginLine = regexp.MustCompile(`(?m)^=== begin change ([0-9a-f]+) ===\n`)
	fileLine  = regexp.MustCompile(`^file (.+) \([^()]*\)$`)
	newLine   = regexp.MustCompile(`^ *(\d+) ([ +]) (.*)$`)
	oldLine   = regexp.MustCompile(`^ {7}- (.*)$`)
)

// parseChange parses the change out of a prompt, in the format that the prompt
// explains.
func parseChange(prompt string) []changedFile {
	m := beginLine.FindStringSubmatchIndex(prompt)
	if m == nil {
		return nil
	}
	body, _, _ := strings.Cut(prompt[m[1]:], "=== end change "+prompt[m[2]:m[3]]+" ===")
	var files []changedFile
	for s := range strings.SplitSeq(body, "\n") {
		if f := fileLine.FindStringSubmatch(s); f != nil {
			files = append(files, changedFile{path: f[1]})
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
	if m := newLine.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		return line{mark: m[2][0], number: n, text: m[3]}, err == nil
	}
	if m := oldLine.FindStringSubmatch(s); m != nil {
		return line{mark: '-', text: m[1]}, true
	}
	return line{}, false
}
