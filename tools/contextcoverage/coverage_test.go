// Package contextcoverage measures the context pack on the commits of a git repository: how many
// names on changed lines are explained by it. universal-ctags is the measure: this
// package uses nothing of the pack to find names, definitions or functions.
package contextcoverage

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

func TestContextCoverage(t *testing.T) {
	repository := os.Getenv("CRITICIZER_COVERAGE_REPO")
	if repository == "" {
		t.Skip("coverage: CRITICIZER_COVERAGE_REPO is not set; make context-coverage REPO=DIR sets it")
	}
	commits, err := strconv.Atoi(os.Getenv("CRITICIZER_COVERAGE_COMMITS"))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := selection.New(selection.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := &measure{git: git(repository), tags: newTagger(t), parser: outline.NewParser(), policy: policy}
	languages, err := os.ReadFile("../../review/outline/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(languages)) {
		if ends, is := strings.CutPrefix(line, "files "); is {
			m.ends = append(m.ends, strings.Fields(ends)...)
		}
	}
	if err := m.run(commits); err != nil {
		t.Fatal(err)
	}
	if m.commits == 0 {
		t.Fatal("no commit changes a source file")
	}
	t.Logf("%d commits of %s", m.commits, path.Base(repository))
	t.Logf("names defined in the same file, explained:  %v  goal 95", m.sameFile)
	t.Logf("names defined elsewhere, in up to 3 files:  %v  goal 60", m.elsewhere)
	t.Logf("functions of up to %d lines shown whole:   %v  goal 95", limits.Lines, m.functions)
}

// depot is the depot path of the repository.
const depot = "//r/main/"

// A share counts hits.
type share struct{ hits, all int }

func (s *share) add(hit bool) {
	s.all++
	if hit {
		s.hits++
	}
}

func (s share) String() string {
	return fmt.Sprintf("%5.1f %%  (%d of %d)", 100*float64(s.hits)/float64(max(1, s.all)), s.hits, s.all)
}

// A measure is the result for a repository.
type measure struct {
	git
	tags   *tagger
	parser *outline.Parser
	policy *selection.Policy
	ends   []string // of the names of files that outline reads

	commits                        int
	sameFile, elsewhere, functions share
}

var limits = pack.Limits{Lines: 120, Files: 20, Bytes: 400_000, Tokens: 30_000}

func (m *measure) run(commits int) error {
	hashes, err := m.lines("rev-list", "--no-merges", "HEAD")
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		if m.commits == commits {
			return nil
		}
		if err := m.measure(hash); err != nil {
			return fmt.Errorf("commit %s: %w", hash, err)
		}
	}
	return nil
}

// A changed file is a file of a commit with the measure's own view of it.
type changed struct {
	path  string
	text  string
	added map[int]bool
	shown map[int]bool // by the diff
	tags  []tag
}

// measure measures one commit, unless it changes no source file.
func (m *measure) measure(hash string) error {
	files, own, err := m.change(hash)
	if err != nil || len(files) == 0 {
		return err
	}
	tree, err := m.tree(hash)
	if err != nil {
		return err
	}
	if err := m.tags.read(m.git, tree); err != nil {
		return err
	}
	m.commits++
	p := pack.New(context.Background(), m.parser, limits, files)
	var existing []string
	folders := map[string][]string{}
	for name := range tree {
		folders[path.Dir(name)] = append(folders[path.Dir(name)], name)
	}
	for _, c := range p.Candidates() {
		name := strings.TrimPrefix(c.Path, depot)
		if c.Dir {
			for _, f := range folders[path.Clean(strings.TrimPrefix(c.Path+"/", depot))] {
				existing = append(existing, depot+f)
			}
		} else if tree[name] != "" {
			existing = append(existing, c.Path)
		}
	}
	slices.Sort(existing)
	existing = slices.DeleteFunc(slices.Compact(existing), func(f string) bool { return m.policy.ByPath(f).Reason != "" })
	chosen, texts := p.Choose(existing), map[string]string{}
	for _, f := range chosen {
		if texts[f], err = m.blob(tree[strings.TrimPrefix(f, depot)]); err != nil {
			return err
		}
	}
	p.Add(context.Background(), chosen, texts)
	m.compare(own, p.Context(), tree)
	return nil
}

// compare counts what the context explains.
func (m *measure) compare(own []changed, c review.Context, tree map[string]string) {
	lines := map[string]map[int]bool{}
	for _, f := range own {
		lines[f.path] = f.shown
	}
	for _, b := range c.Blocks {
		name := strings.TrimPrefix(b.Path, depot)
		if lines[name] == nil {
			lines[name] = map[int]bool{}
		}
		for i := range b.Lines {
			lines[name][b.Line+i] = true
		}
	}
	for _, f := range own {
		m.compareNames(f, lines, tree)
		m.compareFunctions(f, lines[f.path])
	}
}

func (m *measure) compareNames(f changed, lines map[string]map[int]bool, tree map[string]string) {
	for _, name := range namesOn(f.path, f.text, f.added) {
		here := slices.DeleteFunc(slices.Clone(f.tags), func(t tag) bool { return t.name != name })
		if len(here) > 0 {
			defined := slices.DeleteFunc(here, func(t tag) bool { return t.local() })
			if len(defined) > 0 {
				m.sameFile.add(slices.ContainsFunc(defined, func(t tag) bool { return lines[f.path][t.line] }))
			}
			continue
		}
		if places := m.tags.elsewhere(name, f.path, tree); unambiguous(places) {
			m.elsewhere.add(slices.ContainsFunc(places, func(p place) bool { return lines[p.path][p.line] }))
		}
	}
}

// unambiguous reports whether a name is defined in one to three files: of other names, such
// as get, the text does not tell which definition is meant.
func unambiguous(places []place) bool {
	files := map[string]bool{}
	for _, p := range places {
		files[p.path] = true
	}
	return len(files) >= 1 && len(files) <= 3
}

func (m *measure) compareFunctions(f changed, shown map[int]bool) {
	for _, t := range f.tags {
		if !t.isFunction() || t.end <= t.line || t.end-t.line >= limits.Lines {
			continue
		}
		touched, whole := false, true
		for n := t.line; n <= t.end; n++ {
			touched = touched || f.added[n]
			whole = whole && (shown[n] || strings.TrimSpace(lineOf(f.text, n)) == "")
		}
		if touched {
			m.functions.add(whole)
		}
	}
}

// change returns the files of a commit that a review would read.
func (m *measure) change(hash string) (files []review.File, own []changed, err error) {
	rows, err := m.lines("diff-tree", "-r", "--root", "--no-commit-id", "--diff-filter=AM", hash)
	if err != nil || len(rows) > 100 {
		return nil, nil, err
	}
	for _, row := range rows {
		fields := strings.Fields(row)
		_, name, _ := strings.Cut(row, "\t")
		if len(fields) < 6 || !slices.Contains(m.ends, strings.ToLower(path.Ext(name))) || m.policy.ByPath(depot+name).Reason != "" {
			continue
		}
		before, errBefore := m.blob(fields[2])
		after, errAfter := m.blob(fields[3])
		if err := cmp.Or(errBefore, errAfter); err != nil {
			return nil, nil, err
		}
		diff := p4.Diff(depot+name, before, after, 10)
		if diff == "" || len(after) > 1e6 || m.policy.ByContent(depot+name, before, after) != "" {
			continue
		}
		c := changed{path: name, text: after}
		c.shown, c.added = readDiff(diff)
		if c.tags, err = m.tags.of(name, after); err != nil {
			return nil, nil, err
		}
		files = append(files, review.File{DepotPath: depot + name, Action: review.ActionEdit, Diff: diff, Whole: review.Compress(after)})
		own = append(own, c)
	}
	return files, own, nil
}
