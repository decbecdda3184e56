package llm

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review/selection"
)

// A chunk is the part of a change that one call shows: hunks of files.
type chunk []section

// A section is a sequence of hunks of one file.
type section struct {
	file  *file
	hunks []hunk
}

// pack divides files into chunks of at most limit tokens, the most important
// files first. Related files share a chunk if they fit. A file larger than a
// chunk is split between hunks, a hunk between lines. Any one line with the heads
// of its file and hunk has to fit in limit.
//
// If the files have more than budget tokens, each file first gets at most one chunk, and
// the rest of the larger files comes last: a huge file does not displace the others.
func pack(files []*file, limit, budget int) (chunks []chunk) {
	total := 0
	for _, f := range files {
		total += section{f, f.hunks}.tokens()
	}
	var open chunk
	add := func(c chunk) {
		if len(open) > 0 && open.tokens()+c.tokens() > limit {
			chunks, open = append(chunks, open), nil
		}
		open = append(open, c...)
	}
	var rests chunk
	for _, group := range byPriority(files) {
		var first chunk
		for _, f := range group {
			pieces := f.pieces(limit)
			if total > budget && len(pieces) > 1 {
				rests = append(rests, pieces[1:]...)
				pieces = pieces[:1]
			}
			first = append(first, pieces...)
		}
		if first.tokens() <= limit {
			add(first)
			continue
		}
		for _, s := range first {
			add(chunk{s})
		}
	}
	for _, s := range rests {
		add(chunk{s})
	}
	if len(open) > 0 {
		chunks = append(chunks, open)
	}
	return chunks
}

// pieces divides f into sections of at most limit tokens, or of one line.
func (f *file) pieces(limit int) (pieces chunk) {
	for rest := f.hunks; len(rest) > 0; {
		var hunks []hunk
		hunks, rest = cutHunks(rest, limit-f.headSize)
		pieces = append(pieces, section{f, hunks})
	}
	return pieces
}

// cutHunks splits hunks after at most the given number of tokens, and after one line at least:
// between two hunks, or within the first one if that is larger.
func cutHunks(hunks []hunk, tokens int) (head, rest []hunk) {
	left := tokens
	for i, h := range hunks {
		if left -= h.tokens(); left >= 0 || len(h.lines) == 0 {
			continue
		}
		if i > 0 {
			return hunks[:i], hunks[i:]
		}
		n, used := 1, h.headSize+h.lines[0].size
		for n < len(h.lines) && used+h.lines[n].size <= tokens {
			used += h.lines[n].size
			n++
		}
		if n == len(h.lines) { // one line that is too long
			return hunks[:1], hunks[1:]
		}
		return []hunk{h.part(h.lines[:n])}, append([]hunk{h.part(h.lines[n:])}, hunks[1:]...)
	}
	return hunks, nil
}

// split halves c: between files, else between hunks, else between lines. ok is
// false for a single line.
func (c chunk) split() (a, b chunk, ok bool) {
	if half := len(c) / 2; half > 0 {
		return c[:half], c[half:], true
	}
	f, hunks := c[0].file, c[0].hunks
	if half := len(hunks) / 2; half > 0 {
		return chunk{{f, hunks[:half]}}, chunk{{f, hunks[half:]}}, true
	}
	h := hunks[0]
	if half := len(h.lines) / 2; half > 0 {
		return chunk{{f, []hunk{h.part(h.lines[:half])}}}, chunk{{f, []hunk{h.part(h.lines[half:])}}}, true
	}
	return nil, nil, false
}

// manyLines is the number of added lines beyond which a file is not more important.
const manyLines = 300

// byPriority groups related files, such as a header, its source and its test, and sorts the
// groups: source before tests, configuration and documents, then risky code before other code,
// then by added lines. Files within a group are sorted by kind.
func byPriority(files []*file) (groups [][]*file) {
	type group struct {
		files       []*file
		safe, fewer int
	}
	byKey := map[string]*group{}
	var order []*group
	for _, f := range files {
		key := affinity(f.path)
		g := byKey[key]
		if g == nil {
			g = &group{safe: 1}
			byKey[key], order = g, append(order, g)
		}
		g.files = append(g.files, f)
		if selection.IsRisky(f.path) {
			g.safe = 0
		}
		for _, h := range f.hunks {
			for _, l := range h.lines {
				if l.mark == '+' && g.fewer > -manyLines {
					g.fewer--
				}
			}
		}
	}
	kind := func(f *file) int { return int(selection.KindOf(f.path)) }
	for _, g := range order {
		slices.SortStableFunc(g.files, func(a, b *file) int { return cmp.Compare(kind(a), kind(b)) })
	}
	slices.SortStableFunc(order, func(a, b *group) int {
		return cmp.Or(cmp.Compare(kind(a.files[0]), kind(b.files[0])), cmp.Compare(a.safe, b.safe), cmp.Compare(a.fewer, b.fewer))
	})
	for _, g := range order {
		groups = append(groups, g.files)
	}
	return groups
}

// layoutDirs are names of directories that hold parts of the same component.
var layoutDirs = strings.Fields("include inc src source sources public private classes test tests spec specs __tests__ main lib")

// affinity returns the same key for related files: their names are equal without
// the affixes of tests, and their directories without layoutDirs.
func affinity(depotPath string) string {
	dir, base := path.Split(strings.ToLower(depotPath))
	dirs := slices.DeleteFunc(strings.Split(strings.Trim(dir, "/"), "/"), func(part string) bool { return slices.Contains(layoutDirs, part) })
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
