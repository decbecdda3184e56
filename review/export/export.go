// Package export writes a report for other tools, as SARIF 2.1.0. Reports are redacted, so
// the output is too.
package export

import (
	"net/url"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

const toolName = "criticizer"

// maxText bounds one text of a finding, in characters.
const maxText = 10_000

// message returns the texts of a finding as one, for tools that show one. They are plain,
// and not escaped.
func message(f review.Finding) string {
	var texts []string
	for _, s := range []string{f.Title, f.Explanation, f.Suggestion} {
		if s != "" {
			texts = append(texts, plain.Text(s, maxText))
		}
	}
	return strings.Join(texts, "\n\n")
}

// places returns all places of a finding.
func places(f review.Finding) []review.Place {
	return append([]review.Place{f.Place()}, f.Places...)
}

// relativeURI returns a depot path as a relative URI reference: //depot/a b.c is
// depot/a%20b.c. It never has a scheme or a host.
func relativeURI(depotPath string) string {
	return (&url.URL{Path: strings.TrimLeft(depotPath, "/")}).String()
}
