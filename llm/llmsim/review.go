package llmsim

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
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
	Exts    []string `yaml:"exts"` // names of groups of file extensions
	Line    pattern  `yaml:"line"`
	Not     pattern  `yaml:"not"`
	Next    pattern  `yaml:"next"`
	NotNear pattern  `yaml:"not_near"`
	// Fix matches what With replaces in a reported line. Unset: no replacement.
	Fix  pattern `yaml:"fix"`
	With string  `yaml:"with"`
	// Hit and Miss are examples for the test, by file name.
	Hit  map[string][]string `yaml:"hit"`
	Miss map[string][]string `yaml:"miss"`
}

// A pattern is a regular expression. The zero pattern is unset.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML implements [yaml.BytesUnmarshaler].
func (p *pattern) UnmarshalYAML(text []byte) (err error) {
	var s string
	if err := yaml.Unmarshal(text, &s); err != nil {
		return err
	}
	p.Regexp, err = regexp.Compile(s)
	return err
}

var rules = func() []rule {
	var file struct {
		Exts  map[string][]string `yaml:"exts"`
		Rules []rule              `yaml:"rules"`
	}
	if err := yaml.UnmarshalWithOptions(rulesFile, &file, yaml.Strict()); err != nil {
		panic("llmsim: rules.yaml: " + err.Error())
	}
	for i, r := range file.Rules {
		var exts []string
		for _, group := range r.Exts {
			exts = append(exts, file.Exts[group]...)
		}
		file.Rules[i].Exts = exts
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

func (r rule) apply(f changedFile) []finding {
	if len(r.Exts) > 0 && !slices.Contains(r.Exts, f.ext) {
		return nil
	}
	var found []finding
	for i, l := range f.lines {
		if l.mark != '+' || len(r.Exts) > 0 && isComment(f.ext, l.text) || !r.matches(l.text, following(f.lines, i)) {
			continue
		}
		f := finding{Path: f.path, Quote: l.text, Line: l.number, Remark: r.Remark}
		if r.Fix.Regexp != nil && r.Fix.MatchString(l.text) {
			f.Replacement = r.Fix.ReplaceAllString(l.text, r.With)
		}
		found = append(found, f)
		if len(found) == maxPerRule {
			break
		}
	}
	return found
}

func (r rule) matches(s string, next []string) bool {
	near := append([]string{s}, next...)
	switch {
	case !r.Line.MatchString(s), r.Not.Regexp != nil && r.Not.MatchString(s):
		return false
	case r.Next.Regexp != nil && (len(next) == 0 || !r.Next.MatchString(next[0])):
		return false
	}
	return r.NotNear.Regexp == nil || !slices.ContainsFunc(near, r.NotNear.MatchString)
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

func isComment(ext, s string) bool {
	s = strings.TrimSpace(s)
	if slices.Contains([]string{".py", ".sh", ".bash", ".rb"}, ext) {
		return strings.HasPrefix(s, "#")
	}
	return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*") || strings.HasPrefix(s, "*")
}

// A changedFile is one file of the change in a prompt.
type changedFile struct {
	path  string
	ext   string // lower case, with its dot
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
			files = append(files, changedFile{path: f[1], ext: strings.ToLower(path.Ext(f[1]))})
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
