package redaction

import (
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// Limits of texts in a redacted change, in bytes. Texts are cut after they were
// redacted, because a part of a secret may not be recognized.
const (
	maxHeading = 160
	maxJob     = 1_100 // its name and 1,000 bytes of its text
)

// cut returns at most the first n bytes of a redacted text, in whole runes and placeholders.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	if i := strings.LastIndex(s[:min(len(s), n+len(judge.PlaceholderHead))], judge.PlaceholderHead); i >= 0 && i < n && i+judge.ShapeLen(s[i:]) > n {
		n = i
	}
	return s[:n]
}

// cutHeadings cuts the headings after the line numbers of the hunks of a redacted diff.
func cutHeadings(diff string) string {
	var out strings.Builder
	done := 0
	for at := 0; at < len(diff); {
		end := lex.LineEnd(diff, at)
		numbers, heading, ok := strings.Cut(strings.TrimSuffix(diff[at:end], "\n"), " @@ ")
		if ok && strings.HasPrefix(numbers, "@@ -") && len(heading) > maxHeading {
			out.WriteString(diff[done:at] + numbers + " @@ " + cut(heading, maxHeading) + "\n")
			done = end
		}
		at = end
	}
	return out.String() + diff[done:]
}
