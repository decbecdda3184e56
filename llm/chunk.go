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
// If the files have more than budget tokens, each file first gets a fair share,
// of at least one chunk, and the rest of the larger files comes last: a huge file
// does not displace the others.
func pack(files []*file, limit, budget int) []chunk {
	p := &packer{limit: limit}
	share := fairShare(files, budget, limit)
	var rests []section
	for _, group := range byPriority(files) {
		var heads []section
		whole := 0
		for _, f := range group {
			head, rest := cutHunks(f.hunks, share)
			heads = append(heads, section{f, head})
			whole += section{f, head}.tokens()
			if len(rest) > 0 {
				rests = append(rests, section{f, rest})
			}
		}
		p.makeRoom(whole) // related files share a chunk if they fit
		for _, s := range heads {
			p.addSection(s)
		}
	}
	p.close()
	for _, s := range rests {
		p.addSection(s)
	}
	p.close()
	return p.chunks
}

// fairShare returns how many tokens of each file come first: unlimited if all
// files fit in the budget, else the largest share with which the small files and
// the shares of the others fit in three quarters of it. The last quarter is for
// chunks that do not fill up. The share is at least least, because small pieces
// of many files are worth less than the whole of the most important ones.
func fairShare(files []*file, budget, least int) int {
	sizes := make([]int, len(files))
	total := 0
	for i, f := range files {
		sizes[i] = section{f, f.hunks}.tokens()
		total += sizes[i]
	}
	if total <= budget {
		return math.MaxInt
	}
	slices.Sort(sizes)
	left := budget / 4 * 3
	for i, size := range sizes {
		if share := left / (len(sizes) - i); size > share {
			return max(share, least)
		}
		left -= size
	}
	return math.MaxInt
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

// addSection adds a section, to a new chunk if it fits only there.
func (p *packer) addSection(s section) {
	p.makeRoom(s.tokens())
	for _, h := range s.hunks {
		for rest := []hunk{h}; len(rest) > 0 && len(h.lines) > 0; {
			var part []hunk
			part, rest = cutHunks(rest, p.limit-s.file.headSize)
			p.add(s.file, part)
		}
	}
}

// add adds hunks of f to the open chunk, or to a new one if they do not fit.
func (p *packer) add(f *file, hunks []hunk) {
	shows := func() bool { return len(p.open) > 0 && p.open[len(p.open)-1].file == f }
	if p.used+tokensOf(hunks) > p.limit || !shows() && p.used+f.headSize+tokensOf(hunks) > p.limit {
		p.close()
	}
	if !shows() {
		p.open = append(p.open, section{file: f})
		p.used += f.headSize
	}
	last := &p.open[len(p.open)-1]
	last.hunks = append(last.hunks, hunks...)
	p.used += tokensOf(hunks)
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
		first, second := h.part(h.lines[:half]), h.part(h.lines[half:])
		return chunk{{f, []hunk{first}}}, chunk{{f, []hunk{second}}}, true
	}
	return nil, nil, false
}

// manyLines is the number of added lines beyond which a file is not more important.
const manyLines = 300

// byPriority groups related files, such as a header, its source and its test, and sorts the
// groups: source before tests, configuration and documents, then risky code before other code,
// then by added lines. Files within a group are sorted by kind.
func byPriority(files []*file) [][]*file {
	byKey := map[string][]*file{}
	var keys []string
	for _, f := range files {
		key := affinity(f.path)
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], f)
	}
	type rank struct{ kind, safe, fewer int }
	ranks := map[string]rank{}
	for _, key := range keys {
		group := byKey[key]
		slices.SortStableFunc(group, func(a, b *file) int { return cmp.Compare(selection.KindOf(a.path), selection.KindOf(b.path)) })
		r := rank{int(selection.KindOf(group[0].path)), 1, 0}
		for _, f := range group {
			if selection.IsRisky(f.path) {
				r.safe = 0
			}
			for _, h := range f.hunks {
				for _, l := range h.lines {
					if l.mark == '+' && r.fewer > -manyLines {
						r.fewer--
					}
				}
			}
		}
		ranks[key] = r
	}
	slices.SortStableFunc(keys, func(a, b string) int {
		x, y := ranks[a], ranks[b]
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.safe, y.safe), cmp.Compare(x.fewer, y.fewer))
	})
	groups := make([][]*file, len(keys))
	for i, key := range keys {
		groups[i] = byKey[key]
	}
	return groups
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
