package llm

// A chunk is what one call shows: some hunks of some files.
type chunk []section

// A section is a run of hunks of one file.
type section struct {
	file  *file
	hunks []hunk
}

// pack lays files out over chunks of at most limit tokens: files in the order
// of the change and whole where they fit, a larger file split between hunks, a
// larger hunk split between lines. limit has to hold any one line with the
// heads of its file and hunk.
func pack(files []*file, limit int) []chunk {
	p := &packer{limit: limit}
	for _, f := range files {
		p.addFile(f)
	}
	p.close()
	return p.chunks
}

type packer struct {
	limit  int
	chunks []chunk
	open   chunk
	used   int // tokens of open
}

func (p *packer) addFile(f *file) {
	whole := countTokens(f.head())
	sizes := make([]int, len(f.hunks))
	for i, h := range f.hunks {
		sizes[i] = h.tokens()
		whole += sizes[i]
	}
	if p.used+whole > p.limit && whole <= p.limit {
		p.close()
	}
	for i, h := range f.hunks {
		if countTokens(f.head())+sizes[i] <= p.limit {
			p.add(f, h, sizes[i])
		} else {
			p.addParts(f, h)
		}
	}
}

// addParts adds a hunk that is larger than a chunk.
func (p *packer) addParts(f *file, h hunk) {
	head := countTokens(h.head())
	room := p.limit - countTokens(f.head())
	from, size := 0, head
	for i, l := range h.lines {
		n := countTokens(l.render())
		if i > from && size+n > room {
			p.add(f, hunk{h.heading, h.lines[from:i]}, size)
			from, size = i, head
		}
		size += n
	}
	p.add(f, hunk{h.heading, h.lines[from:]}, size)
}

// add puts h into the open chunk, or into a new one if it does not fit.
func (p *packer) add(f *file, h hunk, size int) {
	if len(h.lines) == 0 {
		return
	}
	if p.used+p.cost(f, size) > p.limit {
		p.close()
	}
	p.used += p.cost(f, size)
	if p.shows(f) {
		last := &p.open[len(p.open)-1]
		last.hunks = append(last.hunks, h)
	} else {
		p.open = append(p.open, section{f, []hunk{h}})
	}
}

// cost is what a hunk of f adds to the open chunk.
func (p *packer) cost(f *file, size int) int {
	if p.shows(f) {
		return size
	}
	return size + countTokens(f.head())
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

func (h hunk) tokens() int {
	n := countTokens(h.head())
	for _, l := range h.lines {
		n += countTokens(l.render())
	}
	return n
}

// split halves c for an endpoint that finds it too long: between files, else
// between hunks, else between lines. ok is false for a single line.
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
		first, second := hunk{h.heading, h.lines[:half]}, hunk{h.heading, h.lines[half:]}
		return chunk{{f, []hunk{first}}}, chunk{{f, []hunk{second}}}, true
	}
	return nil, nil, false
}
