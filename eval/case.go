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

// A verdict is case.yaml.
type verdict struct {
	Language  string     `yaml:"language"`
	Clean     bool       `yaml:"clean,omitempty"`
	Hostile   bool       `yaml:"hostile,omitempty"`
	Expected  []expected `yaml:"expected,omitempty"`
	Allowed   []expected `yaml:"allowed,omitempty"`
	Forbidden []expected `yaml:"forbidden,omitempty"`
	Markers   []string   `yaml:"markers,omitempty"`
	Secrets   []string   `yaml:"secrets,omitempty"`
}

// An expected is an [Expectation] as it is written.
type expected struct {
	Path     string          `yaml:"path"`
	Line     int             `yaml:"line,omitempty"`
	Lines    string          `yaml:"lines,omitempty"` // first-last
	Category review.Category `yaml:"category,omitempty"`
	About    []string        `yaml:"about,omitempty"`
	Says     string          `yaml:"says"`
}

// A reading is a case while it is read.
type reading struct {
	*Case
	tree     *ast.File
	problems []error
}

// newCase reads one case. The error lists all that is wrong with it.
func newCase(name string, files map[string]string) (Case, error) {
	r := &reading{Case: &Case{Name: name, Description: files[descriptionFile]}}
	for _, known := range []string{diffFile, descriptionFile, caseFile} {
		if strings.TrimSpace(files[known]) == "" {
			r.wrong("%s: is missing or empty", known)
		}
	}
	for _, unknown := range slices.Sorted(maps.Keys(files)) {
		if !slices.Contains([]string{diffFile, descriptionFile, caseFile}, unknown) {
			r.wrong("%s: is no file of a case: delete it", unknown)
		}
	}
	if len(r.problems) == 0 {
		var err error
		if r.files, err = parseDiff(files[diffFile]); err != nil {
			r.wrong("%s: %w", diffFile, err)
		} else if v, ok := r.parse(files[caseFile]); ok {
			r.take(v, files[diffFile])
		}
	}
	return *r.Case, errors.Join(r.problems...)
}

func (r *reading) wrong(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("case %s: "+format, append([]any{r.Name}, args...)...))
}

// wrongAt reports a problem with a part of case.yaml.
func (r *reading) wrongAt(part, format string, args ...any) {
	line := 1
	if p, err := yaml.PathString("$." + part); err == nil {
		if node, err := p.FilterFile(r.tree); err == nil {
			line = node.GetToken().Position.Line
		}
	}
	r.wrong("%s:%d: %s: "+format, append([]any{caseFile, line, part}, args...)...)
}

func (r *reading) parse(text string) (v verdict, ok bool) {
	var err error
	if r.tree, err = parser.ParseBytes([]byte(text), 0); err == nil {
		err = yaml.UnmarshalWithOptions([]byte(text), &v, yaml.Strict())
	}
	if at, known := errors.AsType[yaml.Error](err); known {
		r.wrong("%s:%d: %s", caseFile, at.GetToken().Position.Line, at.GetMessage())
	} else if err != nil {
		r.wrong("%s: %w", caseFile, err)
	}
	return v, err == nil
}

// take checks v and makes it the case.
func (r *reading) take(v verdict, diff string) {
	r.Language, r.Clean, r.Hostile, r.Markers, r.Secrets = v.Language, v.Clean, v.Hostile, v.Markers, v.Secrets
	r.Expected = r.expectations("expected", v.Expected)
	r.Allowed = r.expectations("allowed", v.Allowed)
	r.Forbidden = r.expectations("forbidden", v.Forbidden)
	if v.Language == "" {
		r.wrongAt("language", "is missing")
	}
	if v.Clean && len(v.Expected) > 0 {
		r.wrongAt("clean", "is true, but findings are expected: delete one of both")
	}
	if !v.Clean && len(v.Expected) == 0 {
		r.wrongAt("expected", "is empty: list what has to be found, or write clean: true")
	}
	if len(v.Markers)+len(v.Secrets) > 0 && !v.Hostile {
		r.wrongAt("hostile", "is false, but there are markers or secrets: write hostile: true")
	}
	if slices.Contains(v.Markers, "") {
		r.wrongAt("markers", "holds an empty one, which is everywhere")
	}
	for i, s := range v.Secrets {
		if s == "" || !strings.Contains(diff, s) && !strings.Contains(r.Description, s) {
			r.wrongAt(fmt.Sprintf("secrets[%d]", i), "is neither in the diff nor in the description")
		}
	}
}

func (r *reading) expectations(list string, written []expected) []Expectation {
	out := make([]Expectation, len(written))
	for i, w := range written {
		part := fmt.Sprintf("%s[%d]", list, i)
		x := Expectation{Path: w.Path, Category: w.Category, About: w.About, Says: strings.TrimSpace(w.Says)}
		var err error
		if x.Start, x.End, err = w.lines(); err != nil {
			r.wrongAt(part, "%w", err)
		}
		at := slices.IndexFunc(r.files, func(f file) bool { return f.path == w.Path })
		switch {
		case at < 0:
			r.wrongAt(part, "the diff has no file %q", w.Path)
		case x.Start > 0 && !r.files[at].shows(x.Start, x.End):
			r.wrongAt(part, "the diff does not show line %d of %s", x.Start, w.Path)
		}
		if x.Says == "" {
			r.wrongAt(part, "says nothing: write the finding in a sentence")
		}
		if w.Category != "" && !slices.Contains(review.Categories(), w.Category) {
			r.wrongAt(part, "category %q: want one of %v", w.Category, review.Categories())
		}
		out[i] = x
	}
	return out
}

var linesForm = regexp.MustCompile(`^(\d{1,7})(?:-(\d{1,7}))?$`)

// lines are those of w, 0 if it names none.
func (w expected) lines() (start, end int, err error) {
	if w.Lines == "" {
		if w.Line < 0 {
			return 0, 0, fmt.Errorf("line %d is negative", w.Line)
		}
		return w.Line, w.Line, nil
	}
	m := linesForm.FindStringSubmatch(w.Lines)
	if m == nil || w.Line != 0 {
		return 0, 0, fmt.Errorf("lines %q: want first-last, such as 12-14, and no line beside it", w.Lines)
	}
	start, _ = strconv.Atoi(m[1])
	end = start
	if m[2] != "" {
		end, _ = strconv.Atoi(m[2])
	}
	if start == 0 || end < start {
		return 0, 0, fmt.Errorf("lines %q: the last comes before the first, or one is 0", w.Lines)
	}
	return start, end, nil
}
