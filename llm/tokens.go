package llm

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// vocabulary is loaded on first use, for 30 ms and 6 MB.
var vocabulary = sync.OnceValue(codec.NewO200kBase)

// countTokens counts with the o200k vocabulary: exactly for OpenAI's models,
// roughly for others. Where it cannot count it does not count too few, for no
// token is shorter than a byte.
func countTokens(s string) int {
	n, err := vocabulary().Count(s)
	if err != nil {
		return len(s)
	}
	return n
}
