package llm

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
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

// tokens returns the number of tokens of the rendered chunk, or a few more: each
// line is counted separately, and only once.
func (c chunk) tokens() (n int) {
	for _, s := range c {
		n += s.tokens()
	}
	return n
}

func (s section) tokens() int { return s.file.headSize + tokensOf(s.hunks) }

func tokensOf(hunks []hunk) (n int) {
	for _, h := range hunks {
		n += h.tokens()
	}
	return n
}

func (h hunk) tokens() int {
	n := h.headSize
	for _, l := range h.lines {
		n += l.size
	}
	return n
}
