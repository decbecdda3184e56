package review

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// A Credit is what the reviews of a changelist say about its content, which another change
// takes over.
type Credit struct {
	// Read is set if a review read all of it.
	Read     bool
	Findings []CreditedFinding
}

// An Origin is the review that reported a finding.
type Origin struct {
	Changelist  Changelist `json:"changelist"`
	Version     Version    `json:"review_version"`
	Fingerprint string     `json:"fingerprint"`
}

// A CreditedFinding is the record of a finding on content that another change takes over.
type CreditedFinding struct {
	Origin
	Others   []string // fingerprints at its other places
	Path     string
	Category Category
	Severity Severity
	// Verbatim is set if the quote is in the file as it is: fixed code no longer has it.
	Verbatim bool
}

// maxQuoted is the number of lines of a quote that is looked for.
const maxQuoted = 20

// OpenIn returns the finding on the text of file at, which has content of file source; ok is
// false if it is not about source or the text no longer has its quote.
func (c CreditedFinding) OpenIn(text, source, at string) (f Finding, ok bool) {
	f = Finding{
		Path: at, Category: c.Category, Severity: c.Severity, Confidence: 1, Anchor: AnchorFile, Origin: &c.Origin,
		Title:       fmt.Sprintf("Reported before in change %d", c.Changelist),
		Explanation: fmt.Sprintf("The review of change %d reported a finding on code that this change takes over.", c.Changelist),
	}
	if !c.Verbatim {
		return f, c.Path == source || len(c.Others) > 0
	}
	lines := strings.Split(text, "\n")
	for first := range lines {
		quoted := ""
		for last := first; last < min(first+maxQuoted, len(lines)); last++ {
			quoted = strings.TrimSpace(quoted + " " + strings.Join(strings.Fields(lines[last]), " "))
			sum := sha256.Sum256([]byte(source + "\x00" + string(c.Category) + "\x00" + quoted))
			if print := fingerprintText(sum); print == c.Fingerprint || slices.Contains(c.Others, print) {
				f.StartLine, f.EndLine, f.Anchor = first+1, last+1, AnchorAdded
				f.Quote = strings.Join(lines[first:last+1], "\n")
				return f, true
			}
		}
	}
	return f, false
}

// IsVerbatim reports whether the quote of f is code as the file has it.
func (f Finding) IsVerbatim() bool {
	return f.Quote != "" && !strings.Contains(f.Quote, "[REDACTED") && !strings.Contains(f.Quote, "[U+") && !strings.Contains(f.Quote, " cut: ") &&
		strings.Count(f.Quote, "\n") < maxQuoted
}
