package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// A check code is a line of the prompt that the answer has to repeat. Servers cut
// long prompts without an error: at the front, at the end or in the middle. An
// answer with all codes in order proves that the model received each place. No line
// of a change begins as a code does, because the prompt marks each of them.
const (
	codePrefix = "check-code: "
	codeBytes  = 4
)

// A chunk of 2,000 to 16,000 tokens has about three codes within it, which quarter it; a larger
// one has a code every maxCodeGap tokens. A server can drop less than a gap unnoticed, so the
// gaps of a small chunk are smaller.
const (
	minCodeGap = 500
	maxCodeGap = 4_000
)

// withCodes renders c. Every line of content begins with "| ", a blank or a digit, so
// that none can pass for the head of a file or hunk, or for a check code:
//
//	file //depot/main/a.c (edit, text)
//	@@ int main(void)
//	    12   unchanged
//	    13 + added
//	       - removed
//
// Check codes are put between its files and hunks. A hunk that is
// longer than a gap continues after the code as another hunk. The codes depend on the
// fence, which is new in every review, and on the text before them. They are the same
// in all calls about c, so that those share a prefix.
func (c chunk) withCodes(fence string) (text string, codes []string) {
	var out strings.Builder
	gap := min(max(c.tokens()/4, minCodeGap), maxCodeGap)
	since := 0 // tokens since the last code
	addCode := func() {
		code := codeAfter(fence, out.String())
		codes = append(codes, code)
		out.WriteString(codePrefix + code + "\n")
		since = 0
	}
	for _, s := range c {
		heads, size := s.file.head(), s.file.headSize // of the next line
		for _, h := range s.hunks {
			heads += h.head()
			size += h.headSize
			for i, l := range h.lines {
				if since >= gap || since+size+l.size > maxCodeGap {
					addCode()
					if i > 0 {
						heads, size = h.head(), h.headSize
					}
				}
				out.WriteString(heads + l.render())
				since += size + l.size
				heads, size = "", 0
			}
		}
		out.WriteString(heads) // of hunks without lines
		since += size
	}
	return out.String(), codes
}

func codeAfter(fence, text string) string {
	sum := sha256.Sum256([]byte(fence + text))
	return hex.EncodeToString(sum[:codeBytes])
}

// codeTokens bounds the tokens that check codes and the hunk heads after them add to
// a chunk of at most n tokens.
func codeTokens(n int) int { return 80 * (n/maxCodeGap + 5) }

// A truncatedError is an answer that does not prove that the model received the whole
// prompt.
type truncatedError struct{ why string }

func (e truncatedError) Error() string {
	return "model endpoint did not prove that it read the whole prompt: " + e.why
}

func unproven(format string, args ...any) error {
	return failure.New(failure.PromptTruncated, truncatedError{fmt.Sprintf(format, args...)})
}

// checkCodes compares the codes of an answer with those of the prompt. Its error
// quotes no code.
func checkCodes(got, want []string) error {
	if slices.Equal(got, want) {
		return nil
	}
	there := 0
	for _, code := range want {
		if slices.Contains(got, code) {
			there++
		}
	}
	return unproven("its answer has %d of the %d check codes in their order", min(there, len(want)-1), len(want))
}
