// Package export writes a report in the formats that other tools read: SARIF
// 2.1.0 for code scanning, and rdjson for reviewdog. A report has passed
// redaction; so has what is made of it here.
package export

import (
	"net/url"
	"strings"

	"github.com/criticizer/criticizer/review"
)

const toolName = "criticizer"

// message is all that a finding says, for tools that show one text.
func message(f review.Finding) string {
	parts := []string{f.Title, f.Explanation, f.Suggestion}
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, "\n\n")
}

// places are all places of a finding, the first one first.
func places(f review.Finding) []review.Place {
	return append([]review.Place{f.Place()}, f.Places...)
}

// relativeURI is a depot path as a relative reference, for no scheme says
// "depot": //depot/a b.c is depot/a%20b.c.
func relativeURI(depotPath string) string {
	return (&url.URL{Path: strings.TrimLeft(depotPath, "/")}).EscapedPath()
}
