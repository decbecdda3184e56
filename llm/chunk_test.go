package llm

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomFile returns a file with random hunks and a few very long lines.
func randomFile(rnd *rand.Rand, name string) *file {
	f := newFile(name, "edit, text")
	number := 1
	for range rnd.IntN(5) {
		number += rnd.IntN(50)
		f.begin(strings.Repeat("h", rnd.IntN(30)))
		for range 1 + rnd.IntN(1+rnd.IntN(300)) {
			l := line{mark: " +-"[rnd.IntN(3)], text: strings.Repeat("word ", rnd.IntN(12))}
			if rnd.IntN(200) == 0 {
				l.text = strings.Repeat("x1", maxLineBytes/2)
			}
			if l.mark != '-' {
				l.number = number
				number++
			}
			f.add(l)
		}
	}
	return f
}

// allLines returns the lines of each file, in order.
func allLines(chunks []chunk) map[string][]string {
	out := map[string][]string{}
	for _, c := range chunks {
		for _, s := range c {
			for _, h := range s.hunks {
				for _, l := range h.lines {
					out[s.file.shown] = append(out[s.file.shown], h.heading+l.render())
				}
			}
		}
	}
	return out
}

func TestPackLosesNoLineAndKeepsTheLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := 2_200 + rnd.IntN(6_000)
		var files []*file
		var whole []chunk
		for i := range rnd.IntN(20) {
			f := randomFile(rnd, fmt.Sprintf("//depot/f%d.c", i))
			files = append(files, f)
			whole = append(whole, chunk{{f, f.hunks}})
		}
		chunks := pack(files, limit, math.MaxInt)
		if !maps.EqualFunc(allLines(chunks), allLines(whole), slices.Equal) {
			t.Fatalf("seed %d: lines were lost, repeated or moved in their file", seed)
		}
		for i, c := range chunks {
			if n := countTokens(uncoded(c)); n > limit {
				t.Errorf("seed %d: chunk %d of %d has %d tokens, limit %d", seed, i, len(chunks), n, limit)
			}
		}
		for _, c := range whole {
			if n := countTokens(uncoded(c)); n < limit-50 && chunksOf(chunks, c[0].file) > 1 {
				t.Errorf("seed %d: a file of %d tokens is in %d chunks of %d", seed, n, chunksOf(chunks, c[0].file), limit)
			}
		}
	}
}

func chunksOf(chunks []chunk, f *file) int {
	n := 0
	for _, c := range chunks {
		if slices.ContainsFunc(c, func(s section) bool { return s.file == f }) {
			n++
		}
	}
	return n
}

func TestSplitLosesNoLine(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		files := []*file{randomFile(rnd, "//depot/a.c"), randomFile(rnd, "//depot/b.c")}
		for _, c := range pack(files, 5_000, math.MaxInt) {
			want := allLines([]chunk{c})
			lines := 0
			for _, of := range want {
				lines += len(of)
			}
			if got := splitAll(c); !maps.EqualFunc(allLines(got), want, slices.Equal) || len(got) != lines {
				t.Fatalf("split into %d chunks of %d lines", len(got), lines)
			}
		}
	}
}

func splitAll(c chunk) []chunk {
	a, b, ok := c.split()
	if !ok {
		return []chunk{c}
	}
	return append(splitAll(a), splitAll(b)...)
}

// newFileOf returns a file with n added lines.
func newFileOf(t *testing.T, path string, n int) *file {
	t.Helper()
	f := newFile(path, "add, text")
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("x%d = f(%d);", i, i)
	}
	if err := f.parse(addedDiff(lines...)); err != nil {
		t.Fatal(err)
	}
	return f
}

func shownIn(c chunk) []string {
	var names []string
	for _, s := range c {
		names = append(names, strings.TrimPrefix(s.file.path, "//depot/"))
	}
	return names
}

func TestMostImportantFilesComeFirst(t *testing.T) {
	t.Parallel()
	var files []*file
	for _, f := range []struct {
		path  string
		lines int
	}{
		{"README.md", 50}, {"Makefile", 5}, {"other_test.go", 20}, {"small.go", 2}, {"large.go", 40}, {"login.go", 1},
		{"include/hero.h", 3}, {"src/hero.cpp", 3}, {"tests/test_hero.cpp", 3},
	} {
		files = append(files, newFileOf(t, "//depot/"+f.path, f.lines))
	}
	want := []string{
		"login.go", "large.go", "include/hero.h", "src/hero.cpp", "tests/test_hero.cpp", "small.go", "other_test.go", "Makefile", "README.md",
	}
	chunks := pack(files, 10_000, math.MaxInt)
	if len(chunks) != 1 || !slices.Equal(shownIn(chunks[0]), want) {
		t.Errorf("%d chunks, the first shows %q, want %q", len(chunks), shownIn(chunks[0]), want)
	}
}

func TestAffinityOfRelatedFiles(t *testing.T) {
	t.Parallel()
	for _, together := range [][]string{
		{"a/foo.go", "a/foo_test.go"},
		{"hero/Public/Hero.h", "hero/Private/Hero.cpp", "hero/Private/Tests/HeroTest.cpp"},
		{"web/src/app.ts", "web/src/app.spec.ts", "web/src/__tests__/app.test.tsx"},
		{"py/pkg/tool.py", "py/pkg/tests/test_tool.py"},
		{"lib/include/x.h", "lib/src/x.c"},
		{"rtl/core.v", "rtl/core_tb.v"},
	} {
		for _, other := range together[1:] {
			if got, want := affinity("//depot/"+other), affinity("//depot/"+together[0]); got != want {
				t.Errorf("%s has affinity %q, %s %q", other, got, together[0], want)
			}
		}
	}
	for _, apart := range [][2]string{{"a/foo.go", "b/foo.go"}, {"a/foo.go", "a/bar.go"}, {"a/test.go", "a/foo.go"}, {"a/.env", "a/.gitignore"}} {
		if affinity("//depot/"+apart[0]) == affinity("//depot/"+apart[1]) {
			t.Errorf("%s and %s have the same affinity", apart[0], apart[1])
		}
	}
}

func TestRelatedFilesShareAChunk(t *testing.T) {
	t.Parallel()
	files := []*file{
		newFileOf(t, "//depot/first.c", 60), newFileOf(t, "//depot/src/hero.cpp", 50), newFileOf(t, "//depot/include/hero.h", 50),
	}
	limit := tokensOf(files[1].hunks) + tokensOf(files[2].hunks) + 100
	chunks := pack(files, limit, math.MaxInt)
	if len(chunks) != 2 || len(chunks[0]) != 2 || len(chunks[1]) != 1 {
		t.Errorf("chunks show %q", slices.Collect(func(yield func([]string) bool) {
			for _, c := range chunks {
				yield(shownIn(c))
			}
		}))
	}
}

// A file that is larger than the whole budget first gets its share; the rest of it
// comes after all other files.
func TestHugeFileDoesNotDisplaceOthers(t *testing.T) {
	t.Parallel()
	const limit, budget = 4_000, 40_000
	huge := newFileOf(t, "//depot/huge.go", 20_000)
	files := []*file{huge}
	for i := range 20 {
		files = append(files, newFileOf(t, fmt.Sprintf("//depot/small%d.go", i), 20))
	}
	chunks := pack(files, limit, budget)
	if got := allLines(chunks)[huge.shown]; len(got) != 20_000 {
		t.Fatalf("%d lines of the huge are laid out", len(got))
	}
	spent := 0
	seen := map[*file]bool{}
	for _, c := range chunks {
		if spent += c.tokens(); spent > budget {
			break
		}
		for _, s := range c {
			seen[s.file] = true
		}
	}
	if len(seen) != len(files) {
		t.Errorf("%d of %d files are seen in part within the budget", len(seen), len(files))
	}
	if first := chunks[0].tokens(); first < limit/2 {
		t.Errorf("the first chunk has %d tokens of %d", first, limit)
	}
}

// uncoded renders c without the tokens of check codes and the heads after them.
func uncoded(c chunk) string {
	var out strings.Builder
	for _, s := range c {
		out.WriteString(s.file.head())
		for _, h := range s.hunks {
			out.WriteString(h.head())
			for _, l := range h.lines {
				out.WriteString(l.render())
			}
		}
	}
	return out.String()
}
