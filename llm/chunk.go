package llm

import (
	"math"
	"slices"
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
	for _, g := range byPriority(files) {
		var heads []section
		for _, f := range g.files {
			head, rest := cutHunks(f.hunks, share)
			heads = append(heads, section{f.file, head})
			if len(rest) > 0 {
				rests = append(rests, section{f.file, rest})
			}
		}
		p.addGroup(heads)
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

// addGroup adds related sections, to a new chunk if they fit only there.
func (p *packer) addGroup(group []section) {
	whole := 0
	for _, s := range group {
		whole += s.tokens()
	}
	p.makeRoom(whole)
	for _, s := range group {
		p.addSection(s)
	}
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
	size := section{f, hunks}.tokens()
	if p.shows(f) {
		size -= f.headSize
	}
	if p.used+size > p.limit {
		p.close()
		size = section{f, hunks}.tokens()
	}
	p.used += size
	if !p.shows(f) {
		p.open = append(p.open, section{file: f})
	}
	last := &p.open[len(p.open)-1]
	last.hunks = append(last.hunks, hunks...)
}

func (p *packer) shows(f *file) bool {
	return len(p.open) > 0 && p.open[len(p.open)-1].file == f
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
