package pack

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
)

const limit = `// Limit bounds a count.
const Limit = 3

func helper(n int) int {
	return n + Limit
}
`

// changed is a Go file of which one line in a long function changed.
func changed(path string, uses ...string) review.File {
	var text strings.Builder
	text.WriteString("package a\n\nimport \"example.com/m/internal/util\"\n\n" + limit + "\nfunc changed() {\n")
	for i := range 30 {
		fmt.Fprintf(&text, "\tline(%d)\n", i)
	}
	n := strings.Count(text.String(), "\n") + 1
	line := "\tuse(" + strings.Join(uses, ", ") + ")\n"
	text.WriteString(line + "}\n")
	return review.File{
		DepotPath: path, Action: review.ActionEdit, Whole: review.Compress(text.String()),
		Diff: fmt.Sprintf("@@ -%d,0 +%d,1 @@ func changed() {\n+%s", n-1, n, line),
	}
}

func brief(c review.Context) (out []string) {
	for _, b := range c.Blocks {
		out = append(out, fmt.Sprintf("%d %s %s:%d+%d %s", b.Tier, b.Kind, b.Path, b.Line, b.Lines, strings.Join(b.Names, " ")))
	}
	return out
}

func TestTiers(t *testing.T) {
	t.Parallel()
	all := Limits{Lines: 120, Files: 2, Bytes: 1000, Tokens: 1000}
	const a, b, util = "//d/m/a/a.go", "//d/m/a/b.go", "//d/m/internal/util/util.go"
	texts := map[string]string{util: "package util\n\n// Do does.\nfunc Do() {}\n\nfunc Other() {}\n", b: "package a\n\ntype Tree struct{}\n"}
	tier0 := []string{"0 enclosing " + a + ":12+31 ", "0 enclosing " + a + ":44+1 ", "0 definition " + a + ":5+2 Limit", "0 definition " + a + ":8+3 helper"}
	siblings := []string{"1 definition " + util + ":3+2 Do", "1 definition " + b + ":3+1 Tree"}
	imports := []string{"0 imports " + a + ":3+1 "}
	for name, tt := range map[string]struct {
		limits Limits
		want   []string
	}{
		"all":               {all, slices.Concat(tier0, siblings, imports)},
		"a short function":  {Limits{Lines: 5, Files: 2, Bytes: 1000, Tokens: 1000}, slices.Concat([]string{"0 enclosing " + a + ":12+1 ", "0 enclosing " + a + ":23+20 ", tier0[1]}, tier0[2:], siblings, imports)},
		"few bytes":         {Limits{Lines: 120, Files: 2, Bytes: 60, Tokens: 1000}, slices.Concat(tier0, siblings[:1], imports)},
		"no files":          {Limits{Lines: 120, Tokens: 1000}, slices.Concat(tier0, imports)},
		"tokens for tier 0": {Limits{Lines: 120, Files: 2, Bytes: 1000, Tokens: 133}, tier0},
		"what fits":         {Limits{Lines: 120, Files: 2, Bytes: 1000, Tokens: 10}, []string{tier0[1], siblings[0]}},
	} {
		p := New(t.Context(), tt.limits, []review.File{changed(a, "Limit", "helper", "util.Do", "Tree{}")})
		chosen := p.Choose([]string{"//d/m/a/z.go", a, b, util})
		if tt.limits.Files == 2 && !slices.Equal(chosen, []string{util, b}) {
			t.Errorf("%s: chose %v", name, chosen)
		}
		p.Add(t.Context(), chosen, texts)
		c := p.Context()
		if got := brief(c); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
		for _, b := range c.Blocks {
			if b.Tier == review.TierSiblings && !slices.ContainsFunc(c.Sources, func(s review.Source) bool { return s.Path == b.Path }) {
				t.Errorf("%s: no source for %s", name, b.Path)
			}
		}
	}
}

// A definition in another file of the change is of tier 0, and serves the file that uses it.
func TestDefinitionInAnotherChangedFile(t *testing.T) {
	t.Parallel()
	user, definer := changed("//d/m/a.go", "helper"), changed("//d/m/b.go", "x")
	whole, err := user.Whole.Text()
	testkit.NoError(t, err)
	user.Whole = review.Compress(strings.Replace(whole, "func helper", "func gone_", 1))
	p := New(t.Context(), Limits{Lines: 9, Tokens: 1000}, []review.File{user, definer})
	i := slices.IndexFunc(p.Context().Blocks, func(b review.Block) bool { return slices.Equal(b.Names, []string{"helper"}) })
	if i < 0 {
		t.Fatalf("got %v", brief(p.Context()))
	}
	if b := p.Context().Blocks[i]; b.Path != "//d/m/b.go" || b.Tier != review.TierChange || !slices.Equal(b.For, []int{0}) {
		t.Errorf("got %+v", b)
	}
}

// Of a long function, the context has the head, the lines around an edit, and what encloses
// them. Imports are one block, with the empty line between groups.
// A changed file is not read from the depot as a neighbour, even if its diff is not shown.
func TestChangedFileIsNotRead(t *testing.T) {
	t.Parallel()
	const a, hidden = "//d/m/a/a.go", "//d/m/a/hidden.go"
	p := New(t.Context(), Limits{Lines: 120, Files: 2, Bytes: 1000, Tokens: 1000}, []review.File{
		changed(a, "Limit"), {DepotPath: hidden, Action: review.ActionEdit},
	})
	if got := p.Choose([]string{a, hidden}); len(got) != 0 {
		t.Errorf("chose %v", got)
	}
}

func TestLongFunction(t *testing.T) {
	t.Parallel()
	lines := []string{"#include <a.h>", "#include <b.h>", "", "#include \"c.h\"", "int long_one(int x)", "{", "  while (x) {"}
	for len(lines) < 100 {
		lines = append(lines, "    step();")
	}
	lines[49], lines[50], lines[51] = "    if (y) {", "#if Z", "out:"
	for i := 60; i < 99; i++ {
		lines[i] = "      inner();"
	}
	lines = append(lines, "    }", "  }", "}", "")
	f := review.File{DepotPath: "//d/m/a.c", Action: review.ActionEdit, Whole: review.Compress(strings.Join(lines, "\n")), Diff: "@@ -89,0 +90,1 @@\n+      inner();\n"}
	got := brief(New(t.Context(), Limits{Lines: 50, Tokens: 10_000}, []review.File{f}).Context())
	const at = "0 enclosing //d/m/a.c:"
	if want := []string{at + "5+2 ", at + "70+20 ", at + "91+13 ", at + "60+1 ", at + "7+1 ", "0 imports //d/m/a.c:1+4 "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A call of a function whose head is edited is shown, from the change and from beside it; not
// its definition, and nothing of a function that is new.
func TestCallsOfAnEditedHead(t *testing.T) {
	t.Parallel()
	file := func(name, text, diff string) review.File {
		return review.File{DepotPath: "//d/m/" + name, Action: review.ActionEdit, Whole: review.Compress(text), Diff: diff}
	}
	p := New(t.Context(), Limits{Lines: 9, Files: 9, Bytes: 1000, Tokens: 1000}, []review.File{
		file("a.go", "package a\n\nfunc edited(n int) int {\n\treturn n\n}\n\nfunc added() {\n}\n", "@@ -3,1 +3,1 @@\n-func edited() int {\n+func edited(n int) int {\n@@ -6,0 +7,2 @@\n+func added() {\n+}\n"),
		file("b.go", "package a\n\nvar x = 1\n", "@@ -3,0 +3,1 @@\n+var x = 1\n"),
	})
	p.Add(t.Context(), []string{"//d/m/c.go"}, map[string]string{"//d/m/c.go": "package a\n\nfunc use() {\n\tadded()\n\t// edited()\n\n\n\tedited()\n\tunedited()\n}\n"})
	calls := slices.DeleteFunc(p.Context().Blocks, func(b review.Block) bool { return b.Kind != review.BlockCall })
	if got := brief(review.Context{Blocks: calls}); !slices.Equal(got, []string{"2 call //d/m/c.go:6+5 edited"}) || len(p.Context().Sources) != 1 {
		t.Errorf("got %q, %d sources", got, len(p.Context().Sources))
	}
}

// Beside the files in their place, those are read whose names are in a name that the change
// uses and does not define. Prose, and files of other languages, are not code.
func TestFilesByName(t *testing.T) {
	t.Parallel()
	f := changed("//d/m/a/a.go", "util.treeFind", "helper")
	p := New(t.Context(), Limits{Files: 1, Named: 2}, []review.File{f, {DepotPath: "//d/m/a/x.md", Diff: "@@ -1,0 +1,1 @@\n+other\n", Whole: review.Compress("other\n")}})
	p.Candidates()
	got := p.Choose([]string{"//d/m/internal/util/x.go", "//d/m/a/helper.go", "//d/m/a/other.go", "//d/m/a/tree.go", "//d/m/a/tree.mod", "//d/m/a/zoo.go"})
	if !slices.Equal(got, []string{"//d/m/internal/util/x.go", "//d/m/a/tree.go"}) {
		t.Errorf("got %q", got)
	}
}

// A file of an imported folder that a changed line names comes before a file that only has a
// name like one on that line.
func TestImportedFolderFirst(t *testing.T) {
	t.Parallel()
	p := New(t.Context(), Limits{Files: 9}, []review.File{changed("//d/m/a/a.go", "Limit", "util.Do")})
	if p.Candidates(); p.Choose([]string{"//d/m/a/limit.go", "//d/m/internal/util/x.go"})[0] != "//d/m/internal/util/x.go" {
		t.Error("the imported folder is not the first")
	}
}

// The time to find the files around a change grows with its size, not with its square.
func TestSearchIsLinear(t *testing.T) {
	t.Parallel()
	of := func(files int) func() {
		var all []review.File
		for i := range files {
			all = append(all, changed(fmt.Sprintf("//d/m/a%d.go", i), fmt.Sprintf("a%d, b%d, c%d, d%d", i, i, i, i)))
		}
		p := New(t.Context(), Limits{Files: 2}, all)
		return func() {
			if p.Candidates(); len(p.Choose([]string{"//d/m/b/a_1_test.go", "//d/m/b/b1.go"})) != 2 {
				t.Error("no file is chosen")
			}
		}
	}
	cputest.Linear(t, 20, 4*time.Millisecond, of(250), of(2_000))
}

// Files of nothing but imports do not take all memory: each import leads to dozens of paths.
func TestCandidatesTakeLittleMemory(t *testing.T) {
	p := &Pack{limits: Limits{Files: 20}}
	for n := range 10 {
		s := &source{path: fmt.Sprintf("//d/a/b/c/d/e/f/g/h/%d.c", n)}
		for i := range 5_000 {
			s.outline.Imports = append(s.outline.Imports, outline.Import{Text: fmt.Sprintf("#include \"a/%d.h\"", n*5_000+i)})
		}
		p.files = append(p.files, s)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := p.Candidates()
	runtime.ReadMemStats(&after)
	if used := (after.Sys - before.Sys) >> 20; len(found) != maxCandidates || used > 100 {
		t.Errorf("%d candidates, %d MB", len(found), used)
	}
	if folder := Folder("//d/a/b/c/d/e/f/g/h/0.c"); !slices.Contains(found, folder) {
		t.Errorf("%v is not looked up", folder)
	}
}

// Each entry of paths.txt leads from a file and an import to the file that is meant.
func TestPathRules(t *testing.T) {
	t.Parallel()
	seen := map[*pathRule]bool{}
	for _, tt := range []struct {
		file, statement, want string
		dir                   bool
	}{
		{"//d/m/src/net/a.c", `#include "b.h"`, "//d/m/src/net/b.h", false},
		{"//d/m/src/net/a.c", `#include <util/b.h>`, "//d/m/include/util/b.h", false},
		{"//d/m/src/net/a.c", `#include "util/b.h"`, "//d/m/include/util", true},
		{"//d/m/Private/Hero.cpp", "", "//d/m/Public/Hero.h", false},
		{"//d/m/src/a.cpp", "", "//d/m/src/tests/a_test.cpp", false},
		{"//d/m/App/Hero.cs", "", "//d/m/App", true},
		{"//d/m/src/main/java/x/y/A.java", "import x.z.B;", "//d/m/src/main/java/x/z/B.java", false},
		{"//d/m/src/test/java/x/ATest.java", "", "//d/m/src/main/java/x/A.java", false},
		{"//d/m/src/test/java/x/ATest.java", "import x.z.B;", "//d/m/src/main/java/x/z/B.java", false},
		{"//d/m/src/x/A.kt", "import x.z.B", "//d/m/src/x/z/B.kt", false},
		{"//d/m/a/a.go", `x "example.com/m/internal/util"`, "//d/m/internal/util", true},
		{"//d/m/a/a.go", `"example.com/m/n/v2"`, "//d/m", true},
		{"//d/m/a/a_test.go", "", "//d/m/a/a.go", false},
		{"//d/m/pkg/a.py", "from .b.c import d", "//d/m/pkg/b/c.py", false},
		{"//d/m/pkg/sub/a.py", "from ..b import d", "//d/m/pkg/b/__init__.py", false},
		{"//d/m/pkg/a.py", "from pkg.b import (c, d)", "//d/m/pkg/b/c.py", false},
		{"//d/m/tests/test_a.py", "import pkg", "//d/m/src/pkg", true},
		{"//d/m/pkg/test_a.py", "", "//d/m/pkg/a.py", false},
		{"//d/m/web/a.ts", "import { x } from '../lib/b.js'", "//d/m/lib/b.ts", false},
		{"//d/m/web/a.tsx", `import x from "@/b"`, "//d/m/src/b.ts", false},
		{"//d/m/src/a.rs", "mod b;", "//d/m/src/a/b.rs", false},
		{"//d/m/src/x/a.rs", "use crate::b::{c};", "//d/m/src/b.rs", false},
		{"//d/m/App/a.swift", "", "//d/m/App", true},
		{"//d/m/lua/a.lua", `require("b.c")`, "//d/m/lua/b/c.lua", false},
		// Braces of a name are not alternatives, of which 40 would be too many for any memory.
		{"//d/m/" + strings.Repeat("{a,b}", 12) + "/{c,d}_test.go", "", "//d/m/" + strings.Repeat("{a,b}", 12) + "/{c,d}.go", false},
	} {
		seen[ruleOf(tt.file)] = true
		got := candidatesOf(tt.file, outline.Outline{Imports: []outline.Import{{Text: tt.statement}}}, nil)
		if !slices.ContainsFunc(got, func(c candidate) bool { return c.Lookup == (Lookup{tt.want, tt.dir}) }) {
			t.Errorf("%s with %q: no %s in %v", tt.file, tt.statement, tt.want, got)
		}
		for _, c := range got {
			if !strings.HasPrefix(c.Path, "//d/") && c.Path != "//d" || strings.Contains(c.Path, "..") {
				t.Errorf("%s leads to %s", tt.file, c.Path)
			}
		}
	}
	for end, r := range pathRules {
		if !seen[r] {
			t.Errorf("the rule of %s has no example", end)
		}
	}
}

// A hostile diff or import does not stop the worker.
func FuzzNew(f *testing.F) {
	f.Add("a.c", "@@ -1,1 +1,2 @@\n-x\n+y\n", "#include \"../../../x.h\"\nint y(void) { return y; }\n")
	f.Add("a.py", "@@ -0,0 +1,1 @@\n+from ... import {a,b}\n", "from ... import {a,b}\n")
	f.Fuzz(func(t *testing.T, name, diff, text string) {
		p := New(t.Context(), Limits{Lines: 9, Files: 3, Bytes: 99, Tokens: 99}, []review.File{{DepotPath: "//d/m/" + name, Diff: diff, Whole: review.Compress(text)}})
		var paths []string
		for _, c := range p.Candidates() {
			paths = append(paths, c.Path)
		}
		p.Add(t.Context(), p.Choose(paths), map[string]string{"//d/m/x": text})
		for _, b := range p.Context().Blocks {
			if b.Line < 1 || b.Lines < 1 || b.Line+b.Lines-1 > len(strings.SplitAfter(text, "\n")) {
				t.Errorf("%+v", b)
			}
		}
	})
}

// A removed line changes the line after it. A hunk without new lines shows none.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	shown, changed := diffLines("@@ -3,4 +3,4 @@\n a\n-b\n c\n+d\n e\n@@ -9,1 +8,0 @@\n-x\n\\ No newline at end of file\n")
	if want := map[int]bool{3: true, 4: true, 5: true, 6: true}; !maps.Equal(shown, want) || !slices.Equal(changed, []int{4, 5}) {
		t.Errorf("shown %v, changed %v", shown, changed)
	}
}

// The search for the blocks around an edit ends at the edit before it: a long function that is
// new as a whole takes eight times as long for eight times the lines.
func TestLongFunctionIsLinear(t *testing.T) {
	of := func(lines int) func() {
		s := &source{path: "//d/a.go", shown: map[int]bool{}}
		s.outline.Definitions = []outline.Definition{{Name: "f", Kind: outline.Function, First: 1, Body: 1, Last: lines + 2}}
		s.lines = []string{"func f() {\n", "\tif x {\n"}
		for n := range lines {
			s.lines = append(s.lines, "\t\tcall()\n")
			s.changed = append(s.changed, n+3)
			s.shown[n+3] = true
		}
		return func() {
			p := &Pack{limits: Bounds, left: 1000}
			p.addEnclosing(s)
		}
	}
	cputest.Linear(t, 30, 4*time.Millisecond, of(2_500), of(20_000))
}
