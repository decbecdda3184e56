package llm

import (
	"runtime"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
	"golang.org/x/sync/errgroup"
)

// vocabulary is loaded on first use, which takes 30 ms and 6 MB.
var vocabulary = sync.OnceValue(codec.NewO200kBase)

// countTokens counts with the o200k vocabulary: exactly for OpenAI's models,
// roughly for others, at about 4 MB per second. If the codec fails, it returns
// the number of bytes, which is an upper bound.
func countTokens(s string) int {
	n, err := vocabulary().Count(s)
	if err != nil {
		return len(s)
	}
	return n
}

// countAll counts the tokens of files on all processors: that takes seconds for
// the largest changes. Afterwards the counts are only read.
func countAll(files []*file) {
	var counts errgroup.Group
	counts.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		counts.Go(func() error {
			f.headTokens()
			for i := range f.hunks {
				h := &f.hunks[i]
				h.headSize = h.headTokens()
				h.tokens()
			}
			return nil
		})
	}
	_ = counts.Wait() // no function fails
}

// tokens returns the number of tokens of the rendered chunk, or a few more: each
// line is counted separately, and only once.
func (c chunk) tokens() int {
	n := 0
	for _, s := range c {
		n += s.tokens()
	}
	return n
}

func (s section) tokens() int { return s.file.headTokens() + tokensOf(s.hunks) }

func tokensOf(hunks []hunk) int {
	n := 0
	for _, h := range hunks {
		n += h.tokens()
	}
	return n
}

func (f *file) headTokens() int {
	if f.headSize == 0 {
		f.headSize = countTokens(f.head())
	}
	return f.headSize
}

func (h hunk) headTokens() int {
	if h.headSize == 0 {
		return countTokens(h.head())
	}
	return h.headSize
}

func (h hunk) tokens() int {
	n := h.headTokens()
	for i := range h.lines {
		n += h.lines[i].tokens()
	}
	return n
}

func (l *line) tokens() int {
	if l.size == 0 {
		l.size = countTokens(l.render())
	}
	return l.size
}
