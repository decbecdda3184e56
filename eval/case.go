package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/p4/local"
	"github.com/criticizer/criticizer/review"
)

// The files of a case. The texts of the changed files are below beforeDir and afterDir.
const (
	descriptionFile = "description.txt"
	caseFile        = "case.yaml"
	beforeDir       = "before/"
	afterDir        = "after/"
)

// A caseYAML is the content of case.yaml.
type caseYAML struct {
	Language   string            `yaml:"language"`
	Clean      bool              `yaml:"clean,omitempty"`
	Hostile    bool              `yaml:"hostile,omitempty"`
	Repository string            `yaml:"repository,omitempty"` // with Commits in place of the texts
	Commits    string            `yaml:"commits,omitempty"`    // from..to
	Expected   []expectationYAML `yaml:"expected"`
	Allowed    []expectationYAML `yaml:"allowed,omitempty"`
	Forbidden  []expectationYAML `yaml:"forbidden,omitempty"`
	Markers    []string          `yaml:"markers,omitempty"`
	Secrets    []string          `yaml:"secrets,omitempty"`
}

// An expectationYAML is an [Expectation] in case.yaml.
type expectationYAML struct {
	Path     string          `yaml:"path"`
	Lines    string          `yaml:"lines,omitempty"` // first-last, or one
	Category review.Category `yaml:"category,omitempty"`
	About    []string        `yaml:"about,omitempty"`
	Says     string          `yaml:"says"`
}

// A caseParser parses one case and collects its problems.
type caseParser struct {
	Case
	repositories string
	tree         *ast.File
	problems     []error
}

// newCase parses one case from its files. Its commits are read from a repository below the
// directory repositories. The error lists all problems.
func newCase(ctx context.Context, name string, files map[string]string, repositories string) (Case, error) {
	p := &caseParser{Case: Case{Name: name, description: files[descriptionFile]}, repositories: repositories}
	before, after := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path, ok := strings.CutPrefix(name, beforeDir); ok {
			before[path] = files[name]
		} else if path, ok := strings.CutPrefix(name, afterDir); ok {
			after[path] = files[name]
		} else if name != caseFile && name != descriptionFile {
			p.addf("%s: is not a file of a case: delete it", name)
		}
	}
	if strings.TrimSpace(files[caseFile]) == "" {
		p.addf("%s: is missing or empty", caseFile)
	}
	if len(p.problems) == 0 {
		p.edits = local.Edits(before, after)
		p.parse(ctx, files[caseFile])
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

func (p *caseParser) parse(ctx context.Context, text string) {
	var y caseYAML
	var err error
	if p.tree, err = parser.ParseBytes([]byte(text), 0); err == nil {
		err = yaml.UnmarshalWithOptions([]byte(text), &y, yaml.Strict())
	}
	if at, ok := errors.AsType[yaml.Error](err); ok {
		hint := ""
		if strings.Contains(at.GetMessage(), `"line"`) {
			hint = ": write lines: N-N"
		}
		p.addf("%s:%d: %s%s", caseFile, at.GetToken().Position.Line, at.GetMessage(), hint)
		return
	} else if err != nil {
		p.addf("%s: %w", caseFile, err)
		return
	}
	p.Language, p.Clean, p.Hostile, p.Markers, p.Secrets = y.Language, y.Clean, y.Hostile, y.Markers, y.Secrets
	if y.Commits != "" {
		p.check(len(p.edits) == 0 && p.description == "", "commits", "stands beside a description or texts: delete one of both")
		if err := p.readCommits(ctx, y.Repository, y.Commits); err != nil {
			p.check(false, "commits", "%w", err)
			return
		}
	} else if len(p.edits) == 0 || strings.TrimSpace(p.description) == "" {
		p.addf("want %s and files below %s and %s that differ, or commits in %s", descriptionFile, beforeDir, afterDir, caseFile)
		return
	}
	p.Expected = p.expectations("expected", y.Expected)
	p.Allowed = p.expectations("allowed", y.Allowed)
	p.Forbidden = p.expectations("forbidden", y.Forbidden)
	p.check(y.Language != "", "language", "is missing")
	p.check(!y.Clean || len(y.Expected) == 0, "clean", "is true, but findings are expected: delete one of both")
	p.check(y.Clean || len(y.Expected) > 0, "expected", "is empty: list the findings, or write clean: true")
	p.check(y.Hostile || len(y.Markers)+len(y.Secrets) == 0, "hostile", "is false, but there are markers or secrets: write hostile: true")
	p.check(!slices.Contains(y.Markers, ""), "markers", "holds an empty text, which every finding contains")
	for i, s := range y.Secrets {
		planted := s != "" && (strings.Contains(p.description, s) || slices.ContainsFunc(p.edits, func(e local.Edit) bool { return strings.Contains(e.Before+e.After, s) }))
		p.check(planted, fmt.Sprintf("secrets[%d]", i), "is neither in the files nor in the description")
	}
}

// readCommits reads the change from a repository.
func (p *caseParser) readCommits(ctx context.Context, name, commits string) error {
	from, to, ok := strings.Cut(commits, "..")
	if !ok || from == "" || to == "" || !filepath.IsLocal(name) {
		return fmt.Errorf("want repository: a directory, such as owner/name, and commits: two of them, such as 1b2c..3d4e")
	}
	p.repository, p.commit = filepath.Join(p.repositories, name), to
	repository, err := git.Open(p.repository)
	if err != nil {
		return err
	}
	about, edits, err := local.Commits(ctx, repository, from, to, "")
	p.description, p.edits = about.Description, edits
	return errors.Join(err, repository.Close())
}

func (p *caseParser) expectations(list string, written []expectationYAML) []Expectation {
	out := make([]Expectation, len(written))
	for i, y := range written {
		part := fmt.Sprintf("%s[%d]", list, i)
		x := Expectation{Path: y.Path, Category: y.Category, About: y.About, Says: strings.TrimSpace(y.Says)}
		var err error
		x.Start, x.End, err = y.lines()
		p.check(err == nil, part, "%w", err)
		at := slices.IndexFunc(p.edits, func(e local.Edit) bool { return e.Path == y.Path })
		p.check(at >= 0, part, "the change has no file %q", y.Path)
		p.check(at < 0 || x.Start <= strings.Count(p.edits[max(at, 0)].After, "\n")+1, part, "%s has no line %d", y.Path, x.Start)
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
		return 0, 0, nil
	}
	m := linesForm.FindStringSubmatch(y.Lines)
	if m == nil {
		return 0, 0, fmt.Errorf("lines %q: want first-last, such as 12-14, or one line", y.Lines)
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
