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

	"go.yaml.in/yaml/v4"

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

// A caseParser parses one case and collects its problems.
type caseParser struct {
	Case
	repositories string
	tree         yaml.Node
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

// check adds a problem with a field of case.yaml unless ok.
func (p *caseParser) check(ok bool, field, format string, args ...any) {
	p.checkItem(ok, field, -1, format, args...)
}

// checkItem adds a problem with an item of a field, or with the field if item is -1.
func (p *caseParser) checkItem(ok bool, field string, item int, format string, args ...any) {
	if ok {
		return
	}
	line, part := 1, field
	for entry := range slices.Chunk(p.tree.Content[0].Content, 2) {
		if value := entry[1]; entry[0].Value == field {
			line = value.Line
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			if item >= 0 {
				line, part = value.Content[item].Line, fmt.Sprintf("%s[%d]", field, item)
			}
		}
	}
	p.addf("%s:%d: %s: "+format, append([]any{caseFile, line, part}, args...)...)
}

func (p *caseParser) parse(ctx context.Context, text string) {
	err := yaml.Load([]byte(text), &p.tree)
	if err == nil {
		err = p.tree.Load(&p.Case, yaml.WithKnownFields())
	}
	if at, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.addf("%s:%d: %s", caseFile, max(at.Mark.Line, 1), explain(at.Message))
		return
	} else if err != nil {
		p.addf("%s: %w", caseFile, err)
		return
	}
	if p.Commits != "" {
		p.check(len(p.edits) == 0 && p.description == "", "commits", "stands beside a description or texts: delete one of both")
		if err := p.readCommits(ctx, p.Repository, p.Commits); err != nil {
			p.check(false, "commits", "%w", err)
			return
		}
	} else if len(p.edits) == 0 || strings.TrimSpace(p.description) == "" {
		p.addf("want %s and files below %s and %s that differ, or commits in %s", descriptionFile, beforeDir, afterDir, caseFile)
		return
	}
	p.expectations("expected", p.Expected)
	p.expectations("allowed", p.Allowed)
	p.expectations("forbidden", p.Forbidden)
	p.check(p.Language != "", "language", "is missing")
	p.check(!p.Clean || len(p.Expected) == 0, "clean", "is true, but findings are expected: delete one of both")
	p.check(p.Clean || len(p.Expected) > 0, "expected", "is empty: list the findings, or write clean: true")
	p.check(p.Hostile || len(p.Markers)+len(p.Secrets) == 0, "hostile", "is false, but there are markers or secrets: write hostile: true")
	p.check(!slices.Contains(p.Markers, ""), "markers", "holds an empty text, which every finding contains")
	for i, s := range p.Secrets {
		planted := s != "" && (strings.Contains(p.description, s) || slices.ContainsFunc(p.edits, func(e local.Edit) bool { return strings.Contains(e.Before+e.After, s) }))
		p.checkItem(planted, "secrets", i, "is neither in the files nor in the description")
	}
}

// Messages of the YAML library that name Go types.
var (
	unknownField = regexp.MustCompile(`^field (.+) not found in type eval\.(\w+)$`)
	wrongType    = regexp.MustCompile("^cannot construct !!(\\w+)(?: `(?s:(.*))`)? into (\\S+)$")
)

// explain returns a message of the YAML library in the words of docs/eval.md.
func explain(message string) string {
	switch message {
	case "yaml: no documents in stream":
		return "has no fields: write at least language, and expected or clean"
	case "yaml: expected single document, found multiple":
		return "holds several documents: delete all --- lines but the first"
	}
	if m := unknownField.FindStringSubmatch(message); m != nil {
		switch field, of := m[1], m[2]; {
		case field == "line":
			return "line: is not a field: write lines: N-N"
		case of == "Expectation":
			return field + ": is not a field of a finding: write one of path, lines, category, about, says"
		default:
			return field + ": is not a field of a case: write one of language, clean, hostile, repository, commits, expected, allowed, forbidden, markers, secrets"
		}
	}
	if m := wrongType.FindStringSubmatch(message); m != nil {
		is, want := m[2], m[3]
		switch m[1] {
		case "seq":
			is = "a list"
		case "map":
			is = "a mapping"
		default:
			is = strconv.Quote(is)
		}
		switch want {
		case "eval.Case":
			want = "the fields of a case, as name: value"
		case "eval.Expectation":
			want = "a finding with the fields path and says"
		case "[]eval.Expectation":
			want = "a list of findings"
		case "[]string":
			want = "a list of texts"
		case "string", "review.Category":
			want = "a text"
		case "bool":
			want = "true or false"
		}
		return fmt.Sprintf("is %s: want %s", is, want)
	}
	return message
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

func (p *caseParser) expectations(list string, xs []Expectation) {
	for i := range xs {
		x := &xs[i]
		check := func(ok bool, format string, args ...any) { p.checkItem(ok, list, i, format, args...) }
		err := x.readLines()
		check(err == nil, "%w", err)
		at := slices.IndexFunc(p.edits, func(e local.Edit) bool { return e.Path == x.Path })
		check(at >= 0, "the change has no file %q", x.Path)
		check(at < 0 || x.Start <= strings.Count(p.edits[max(at, 0)].After, "\n")+1, "%s has no line %d", x.Path, x.Start)
		x.Says = strings.TrimSpace(x.Says)
		check(x.Says != "", "says is empty: write the finding in a sentence")
		check(x.Category == "" || slices.Contains(review.Categories(), x.Category), "category %q: want one of %v", x.Category, review.Categories())
	}
}

var linesForm = regexp.MustCompile(`^(\d{1,7})(?:-(\d{1,7}))?$`)

// readLines sets the first and last line, if there are any.
func (x *Expectation) readLines() error {
	if x.Lines == "" {
		return nil
	}
	m := linesForm.FindStringSubmatch(x.Lines)
	if m == nil {
		return fmt.Errorf("lines %q: want first-last, such as 12-14, or one line", x.Lines)
	}
	x.Start, _ = strconv.Atoi(m[1])
	x.End = x.Start
	if m[2] != "" {
		x.End, _ = strconv.Atoi(m[2])
	}
	if x.Start == 0 || x.End < x.Start {
		return fmt.Errorf("lines %q: the last is less than the first, or one is 0", x.Lines)
	}
	return nil
}
