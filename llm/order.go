package llm

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review/selection"
)

// A group is files that are understood better together: a header and its
// source, a subject and its test.
type group struct {
	files []ranked
	risky bool
	added int // lines
}

// A ranked file is one whose kind is known, which is long to find out.
type ranked struct {
	*file
	kind selection.Kind
}

// manyLines is from where on more new lines do not make a file more important.
const manyLines = 300

// inReviewOrder groups files and orders the groups by what a review of them is
// worth: source before tests, configuration and documents, risky code before
// other, more new lines before fewer. Within a group the order is the same.
func inReviewOrder(files []*file) []group {
	byKey := map[string]int{}
	var groups []group
	for _, f := range files {
		key := affinity(f.path)
		i, known := byKey[key]
		if !known {
			i = len(groups)
			byKey[key] = i
			groups = append(groups, group{})
		}
		groups[i].add(f)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.files, func(a, b ranked) int { return cmp.Compare(a.kind, b.kind) })
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.files[0].kind, b.files[0].kind), last(a.risky, b.risky), cmp.Compare(min(b.added, manyLines), min(a.added, manyLines)))
	})
	return groups
}

// last sorts true before false.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (g *group) add(f *file) {
	g.files = append(g.files, ranked{f, selection.KindOf(f.path)})
	g.risky = g.risky || selection.IsRisky(f.path)
	g.added += f.added()
}

// added is the number of lines that are new.
func (f *file) added() int {
	n := 0
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.mark == '+' {
				n++
			}
		}
	}
	return n
}

// besides are directories that lie beside each other and hold parts of one thing.
var besides = map[string]bool{
	"include": true, "inc": true, "src": true, "source": true, "sources": true, "public": true, "private": true, "classes": true,
	"test": true, "tests": true, "spec": true, "specs": true, "__tests__": true, "main": true, "lib": true,
}

// affinity is equal for files that belong together: those of one name without
// the marks of tests, in directories that lie beside each other.
func affinity(depotPath string) string {
	dir, base := path.Split(strings.ToLower(depotPath))
	var dirs []string
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if !besides[part] {
			dirs = append(dirs, part)
		}
	}
	stem, _, _ := strings.Cut(strings.TrimLeft(base, "."), ".")
	stem = strings.TrimPrefix(stem, "test_")
	for _, suffix := range []string{"_test", "_tests", "-test", "_spec", "tests", "test", "_tb"} {
		if rest, ok := strings.CutSuffix(stem, suffix); ok && rest != "" {
			stem = rest
			break
		}
	}
	return strings.Join(dirs, "/") + "/" + stem
}
