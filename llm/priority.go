package llm

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review/selection"
)

// A group is a set of related files, such as a header, its source and its test.
type group struct {
	files []ranked
	risk  int // 1 if a file is risky, else 0
	added int // lines
}

// A ranked file is a file with its kind, which is expensive to determine.
type ranked struct {
	*file
	kind selection.Kind
}

// manyLines is the number of added lines beyond which a file is not more important.
const manyLines = 300

// byPriority groups related files and sorts the groups: source before tests,
// configuration and documents, then risky code before other code, then by added
// lines. Files within a group are sorted by kind.
func byPriority(files []*file) []group {
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
		return cmp.Or(cmp.Compare(a.files[0].kind, b.files[0].kind), cmp.Compare(b.risk, a.risk), cmp.Compare(min(b.added, manyLines), min(a.added, manyLines)))
	})
	return groups
}

func (g *group) add(f *file) {
	g.files = append(g.files, ranked{f, selection.KindOf(f.path)})
	if selection.IsRisky(f.path) {
		g.risk = 1
	}
	g.added += f.added()
}

// added returns the number of added lines.
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

// layoutDirs are names of directories that hold parts of the same component.
var layoutDirs = map[string]bool{
	"include": true, "inc": true, "src": true, "source": true, "sources": true, "public": true, "private": true, "classes": true,
	"test": true, "tests": true, "spec": true, "specs": true, "__tests__": true, "main": true, "lib": true,
}

// affinity returns the same key for related files: their names are equal without
// the affixes of tests, and their directories without layoutDirs.
func affinity(depotPath string) string {
	dir, base := path.Split(strings.ToLower(depotPath))
	var dirs []string
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if !layoutDirs[part] {
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
