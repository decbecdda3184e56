package llm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomFile has hunks of some lines, a few of them huge.
func randomFile(rnd *rand.Rand, name string) *file {
	f := &file{path: name, shown: name, kind: "edit, text"}
	number := 1
	for range rnd.IntN(5) {
		number += rnd.IntN(50)
		h := hunk{heading: strings.Repeat("h", rnd.IntN(30))}
		for range 1 + rnd.IntN(1+rnd.IntN(300)) {
			l := line{mark: " +-"[rnd.IntN(3)], text: strings.Repeat("word ", rnd.IntN(12))}
			if rnd.IntN(200) == 0 {
				l.text = strings.Repeat("x1", maxLineBytes/2)
			}
			if l.mark != '-' {
				l.number = number
				number++
			}
			h.lines = append(h.lines, l)
		}
		f.hunks = append(f.hunks, h)
	}
	return f
}

// allLines lists every line with its file, in order.
func allLines(chunks []chunk) []string {
	var out []string
	for _, c := range chunks {
		for _, s := range c {
			for _, h := range s.hunks {
				for _, l := range h.lines {
					out = append(out, s.file.shown+h.heading+l.render())
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
		chunks := pack(files, limit)
		if !slices.Equal(allLines(chunks), allLines(whole)) {
			t.Fatalf("seed %d: lines were lost, repeated or moved", seed)
		}
		for i, c := range chunks {
			if n := countTokens(c.render()); n > limit {
				t.Errorf("seed %d: chunk %d of %d has %d tokens, limit %d", seed, i, len(chunks), n, limit)
			}
		}
		for _, c := range whole {
			if n := countTokens(c.render()); n < limit-50 && chunksOf(chunks, c[0].file) > 1 {
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

func TestPackPutsSmallFilesTogether(t *testing.T) {
	t.Parallel()
	var files []*file
	for i := range 10 {
		f := &file{shown: fmt.Sprintf("//depot/f%d.c", i), kind: "edit, text"}
		if err := f.parse(addedDiff("int x;", "int y;")); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if chunks := pack(files, 2_000); len(chunks) != 1 || len(chunks[0]) != 10 {
		t.Errorf("got %d chunks", len(chunks))
	}
}

func TestSplitLosesNoLine(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		files := []*file{randomFile(rnd, "//depot/a.c"), randomFile(rnd, "//depot/b.c")}
		for _, c := range pack(files, 5_000) {
			if got := splitAll(c); !slices.Equal(allLines(got), allLines([]chunk{c})) || len(got) != len(allLines(got)) {
				t.Fatalf("split into %d chunks of %d lines", len(got), len(allLines(got)))
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
