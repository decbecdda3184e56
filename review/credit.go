package review

import (
	"crypto/sha256"
	"fmt"
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
	Source   string // file that the content is taken from
	Category Category
	Severity Severity
	// Verbatim is set if the quote is in the file as it is: fixed code no longer has it.
	Verbatim bool
}

// maxQuoted is the number of lines of a quote that is looked for.
const maxQuoted = 20

// OpenFindings returns the findings on what the text of file at takes over from their
// sources: those whose quote it still has, and those whose quote cannot be looked for.
func OpenFindings(text, at string, credited []CreditedFinding) (open []Finding) {
	wanted := map[string]map[string]bool{} // fingerprints by what is hashed before the quote
	found := map[string][2]int{}           // first and last line by fingerprint
	for _, c := range credited {
		if head := c.Source + "\x00" + string(c.Category) + "\x00"; c.Verbatim {
			if wanted[head] == nil {
				wanted[head] = map[string]bool{}
			}
			for _, print := range append([]string{c.Fingerprint}, c.Others...) {
				wanted[head][print] = true
			}
		}
	}
	lines := strings.Split(text, "\n")
	for head, prints := range wanted {
		for first := range lines {
			quoted := ""
			for last := first; last < min(first+maxQuoted, len(lines)); last++ {
				quoted = strings.TrimSpace(quoted + " " + strings.Join(strings.Fields(lines[last]), " "))
				if print := fingerprintText(sha256.Sum256([]byte(head + quoted))); prints[print] && found[print] == [2]int{} {
					found[print] = [2]int{first + 1, last + 1}
				}
			}
		}
	}
	seen := map[Origin]bool{}
	for _, c := range credited {
		f := Finding{
			Path: at, Category: c.Category, Severity: c.Severity, Confidence: 1, Anchor: AnchorFile, Origin: &c.Origin,
			Title:       fmt.Sprintf("Reported before in change %d", c.Changelist),
			Explanation: fmt.Sprintf("The review of change %d reported a finding on code that this change takes over.", c.Changelist),
		}
		isOpen := !c.Verbatim && (c.Path == c.Source || len(c.Others) > 0)
		for _, print := range append([]string{c.Fingerprint}, c.Others...) {
			if place := found[print]; c.Verbatim && !isOpen && place[0] > 0 {
				isOpen = true
				f.StartLine, f.EndLine, f.Anchor = place[0], place[1], AnchorAdded
				f.Quote = strings.Join(lines[place[0]-1:place[1]], "\n")
			}
		}
		if isOpen && !seen[c.Origin] {
			seen[c.Origin] = true
			open = append(open, f)
		}
	}
	return open
}

// IsVerbatim reports whether the quote of f is code as the file has it. The new file does not
// have removed code.
func (f Finding) IsVerbatim() bool {
	return f.Anchor != AnchorRemoved && f.Quote != "" && !strings.Contains(f.Quote, "[REDACTED") && !strings.Contains(f.Quote, "[U+") && !strings.Contains(f.Quote, " cut: ") &&
		strings.Count(f.Quote, "\n") < maxQuoted
}
