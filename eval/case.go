package eval

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/criticizer/criticizer/review"
)

// The files of a case.
const (
	diffFile        = "change.diff"
	descriptionFile = "description.txt"
	caseFile        = "case.yaml"
)

// A caseYAML is the content of case.yaml.
type caseYAML struct {
	Language  string            `yaml:"language"`
	Clean     bool              `yaml:"clean"`
	Hostile   bool              `yaml:"hostile"`
	Expected  []expectationYAML `yaml:"expected"`
	Allowed   []expectationYAML `yaml:"allowed"`
	Forbidden []expectationYAML `yaml:"forbidden"`
	Markers   []string          `yaml:"markers"`
	Secrets   []string          `yaml:"secrets"`
}

// An expectationYAML is an [Expectation] in case.yaml.
type expectationYAML struct {
	Path     string          `yaml:"path"`
	Line     int             `yaml:"line"`
	Lines    string          `yaml:"lines"` // first-last
	Category review.Category `yaml:"category"`
	About    []string        `yaml:"about"`
	Says     string          `yaml:"says"`
}

// A caseParser parses one case and collects its problems.
type caseParser struct {
	Case
	tree     *ast.File
	problems []error
}

// newCase parses one case from its files. The error lists all problems.
func newCase(name string, files map[string]string) (Case, error) {
	p := &caseParser{Case: Case{Name: name, Description: files[descriptionFile]}}
	known := []string{diffFile, descriptionFile, caseFile}
	for _, name := range known {
		if strings.TrimSpace(files[name]) == "" {
			p.addf("%s: is missing or empty", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains(known, name) {
			p.addf("%s: is not a file of a case: delete it", name)
		}
	}
	if len(p.problems) == 0 {
		var err error
		if p.files, err = parseDiff(files[diffFile]); err != nil {
			p.addf("%s: %w", diffFile, err)
		} else {
			p.parse(files[caseFile], files[diffFile])
		}
	}
	return p.Case, errors.Join(p.problems...)
}

func (p *caseParser) addf(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("case %s: "+format, append([]any{p.Name}, args...)...))
}

// check adds a problem with a part of case.yaml unless ok.
func (p *caseParser) check(ok bool, part, format string, args ...any) {
	if ok {
		return
	}
	line := 1
	if at, err := yaml.PathString("$." + part); err == nil {
		if node, err := at.FilterFile(p.tree); err == nil {
			line = node.GetToken().Position.Line
		}
	}
	p.addf("%s:%d: %s: "+format, append([]any{caseFile, line, part}, args...)...)
}

func (p *caseParser) parse(text, diff string) {
	var y caseYAML
	var err error
	if p.tree, err = parser.ParseBytes([]byte(text), 0); err == nil {
		err = yaml.UnmarshalWithOptions([]byte(text), &y, yaml.Strict())
	}
	if at, ok := errors.AsType[yaml.Error](err); ok {
		p.addf("%s:%d: %s", caseFile, at.GetToken().Position.Line, at.GetMessage())
		return
	} else if err != nil {
		p.addf("%s: %w", caseFile, err)
		return
	}
	p.Language, p.Clean, p.Hostile, p.Markers, p.Secrets = y.Language, y.Clean, y.Hostile, y.Markers, y.Secrets
	p.Expected = p.expectations("expected", y.Expected)
	p.Allowed = p.expectations("allowed", y.Allowed)
	p.Forbidden = p.expectations("forbidden", y.Forbidden)
	p.check(y.Language != "", "language", "is missing")
	p.check(!y.Clean || len(y.Expected) == 0, "clean", "is true, but findings are expected: delete one of both")
	p.check(y.Clean || len(y.Expected) > 0, "expected", "is empty: list the findings, or write clean: true")
	p.check(y.Hostile || len(y.Markers)+len(y.Secrets) == 0, "hostile", "is false, but there are markers or secrets: write hostile: true")
	p.check(!slices.Contains(y.Markers, ""), "markers", "holds an empty text, which every finding contains")
	for i, s := range y.Secrets {
		planted := s != "" && (strings.Contains(diff, s) || strings.Contains(p.Description, s))
		p.check(planted, fmt.Sprintf("secrets[%d]", i), "is neither in the diff nor in the description")
	}
}

func (p *caseParser) expectations(list string, written []expectationYAML) []Expectation {
	out := make([]Expectation, len(written))
	for i, y := range written {
		part := fmt.Sprintf("%s[%d]", list, i)
		x := Expectation{Path: y.Path, Category: y.Category, About: y.About, Says: strings.TrimSpace(y.Says)}
		var err error
		x.Start, x.End, err = y.lines()
		p.check(err == nil, part, "%w", err)
		f := findFile(p.files, y.Path)
		p.check(f != nil, part, "the diff has no file %q", y.Path)
		p.check(f == nil || x.Start == 0 || f.shows(x.Start, x.End), part, "the diff does not show line %d of %s", x.Start, y.Path)
		p.check(x.Says != "", part, "says is empty: write the finding in a sentence")
		p.check(y.Category == "" || slices.Contains(review.Categories(), y.Category), part, "category %q: want one of %v", y.Category, review.Categories())
		out[i] = x
	}
	return out
}

var linesForm = regexp.MustCompile(`^(\d{1,7})(?:-(\d{1,7}))?$`)

// lines returns the first and last line, 0 if there is none.
func (y expectationYAML) lines() (start, end int, err error) {
	if y.Lines == "" {
		if y.Line < 0 {
			return 0, 0, fmt.Errorf("line %d is negative", y.Line)
		}
		return y.Line, y.Line, nil
	}
	m := linesForm.FindStringSubmatch(y.Lines)
	if m == nil || y.Line != 0 {
		return 0, 0, fmt.Errorf("lines %q: want first-last, such as 12-14, and no line beside it", y.Lines)
	}
	start, _ = strconv.Atoi(m[1])
	end = start
	if m[2] != "" {
		end, _ = strconv.Atoi(m[2])
	}
	if start == 0 || end < start {
		return 0, 0, fmt.Errorf("lines %q: the last is less than the first, or one is 0", y.Lines)
	}
	return start, end, nil
}
