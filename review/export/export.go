// Package export writes a report for other tools: as SARIF 2.1.0 for code scanning and
// as rdjson for reviewdog. Reports are redacted, so the output is too.
package export

import (
	"net/url"
	"strings"

	"github.com/criticizer/criticizer/review"
)

const toolName = "criticizer"

// message returns the texts of a finding as one, for tools that show one.
func message(f review.Finding) string {
	parts := []string{f.Title, f.Explanation, f.Suggestion}
	var texts []string
	for _, p := range parts {
		if p != "" {
			texts = append(texts, p)
		}
	}
	return strings.Join(texts, "\n\n")
}

// places returns all places of a finding.
func places(f review.Finding) []review.Place {
	return append([]review.Place{f.Place()}, f.Places...)
}

// relativeURI returns a depot path as a relative URI reference: //depot/a b.c is
// depot/a%20b.c.
func relativeURI(depotPath string) string {
	return (&url.URL{Path: strings.TrimLeft(depotPath, "/")}).EscapedPath()
}
