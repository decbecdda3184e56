package llm

import (
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// What we write into a change ourselves. A model that takes it for code finds
// defects in it that the code does not have.
var (
	redactedMark = regexp.MustCompile(`\[REDACTED\b`)
	cutMark      = regexp.MustCompile(`\[(?:line|text) cut: \d+ bytes more\]|=== (?:begin|end) [a-z]+ [0-9a-f]{8,}`)
	headMark     = regexp.MustCompile("^(?:```\\w*|@@ .*|file //.+ \\([a-z/]+, .+\\))\\s*$")
)

// withoutHeads leaves out of a quote the lines that only frame code: heads of
// files and hunks, and the fence of a code block.
func withoutHeads(quote string) string {
	var out strings.Builder
	for l := range strings.Lines(quote) {
		if !headMark.MatchString(l) {
			out.WriteString(l)
		}
	}
	return out.String()
}

// aboutMarker reports whether m quotes what we wrote, not what the author did.
// That a secret stands in the code is a finding of its own, and security it is.
func (m remark) aboutMarker() bool {
	switch {
	case cutMark.MatchString(m.Quote):
		return true
	case redactedMark.MatchString(m.Quote):
		return m.Category != review.CategorySecurity
	}
	return strings.TrimSpace(m.Quote) != "" && strings.TrimSpace(withoutHeads(m.Quote)) == ""
}
