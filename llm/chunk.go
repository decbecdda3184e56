package llm

import (
	"cmp"
	"math"
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
func pack(files []*file, limit, budget int) []chunk {
	p := &packer{limit: limit}
	total := 0
	for _, f := range files {
		total += section{f, f.hunks}.tokens()
	}
	var rests []section
	for _, group := range byPriority(files) {
		var heads chunk
		for _, f := range group {
			share := math.MaxInt
			if total > budget {
				share = limit - f.headSize
			}
			head, rest := cutHunks(f.hunks, share)
			heads = append(heads, section{f, head})
			if len(rest) > 0 {
				rests = append(rests, section{f, rest})
			}
		}
		p.makeRoom(heads.tokens())
		for _, s := range heads {
			p.add(s)
		}
	}
	p.close()
	for _, s := range rests {
		p.add(s)
	}
	p.close()
	return p.chunks
}

// cutHunks splits hunks after the given number of tokens, and after one line at least.
func cutHunks(hunks []hunk, tokens int) (head, rest []hunk) {
	for i, h := range hunks {
		if size := h.tokens(); size <= tokens {
			tokens -= size
			continue
		}
		n, used := 0, h.headSize
		for n < len(h.lines) && used+h.lines[n].size <= tokens {
			used += h.lines[n].size
			n++
		}
		if n == 0 && i > 0 {
			return hunks[:i], hunks[i:]
		}
		n = max(n, 1)
		return append(slices.Clip(hunks[:i]), h.part(h.lines[:n])), append([]hunk{h.part(h.lines[n:])}, hunks[i+1:]...)
	}
	return hunks, nil
}

type packer struct {
	limit  int
	chunks []chunk
	open   chunk
	used   int // tokens of open
}

// makeRoom opens a new chunk if tokens fit only there.
func (p *packer) makeRoom(tokens int) {
	if p.used+tokens > p.limit && tokens <= p.limit {
		p.close()
	}
}

// add adds a section, to new chunks if it fits only there.
func (p *packer) add(s section) {
	p.makeRoom(s.tokens())
	for _, h := range s.hunks {
		for rest := []hunk{h}; len(rest) > 0 && len(h.lines) > 0; {
			var part []hunk
			part, rest = cutHunks(rest, p.limit-s.file.headSize)
			shown := len(p.open) > 0 && p.open[len(p.open)-1].file == s.file
			if p.used+tokensOf(part) > p.limit || !shown && p.used+s.file.headSize+tokensOf(part) > p.limit {
				p.close()
				shown = false
			}
			if !shown {
				p.open = append(p.open, section{file: s.file})
				p.used += s.file.headSize
			}
			last := &p.open[len(p.open)-1]
			last.hunks = append(last.hunks, part...)
			p.used += tokensOf(part)
		}
	}
}

func (p *packer) close() {
	if len(p.open) > 0 {
		p.chunks = append(p.chunks, p.open)
	}
	p.open, p.used = nil, 0
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
