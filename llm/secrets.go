package llm

import (
	"fmt"
	"regexp"

	"github.com/criticizer/criticizer/review"
)

// testPath matches paths of tests and examples, whose secrets are usually invented.
var testPath = regexp.MustCompile(`(?i)(^|[/._-])(tests?|testdata|fixtures?|specs?|mocks?|examples?|samples?|demo)([/._-]|$)|_test\.[a-z]+$`)

// committedSecrets returns a finding for each certain secret that the change adds. Redaction
// found them: no model is asked, and none saw them.
func (run *run) committedSecrets() (found []candidate) {
	for _, f := range run.change.Files {
		lines := map[int]review.DiffLine{}
		for l := range review.DiffLines(f.Diff.String()) {
			lines[l.Row] = l
		}
		for _, s := range f.Secrets {
			l := lines[s.Row]
			if testPath.MatchString(f.Path.String()) && !s.Checked || l.Number == 0 {
				continue
			}
			found = append(found, candidate{byRedaction: true, Finding: review.Finding{
				Path: f.Path.String(), StartLine: l.Number, EndLine: l.Number, Quote: l.Text, Anchor: review.AnchorAdded,
				Severity: review.SeverityHigh, Category: review.CategorySecurity, Confidence: 1,
				Title:       fmt.Sprintf("A secret is committed (%s)", s.Class),
				Explanation: "Everybody who may read the depot can use it, and it stays in the history if the line is removed. The model has not seen it.",
				Suggestion:  "Revoke or rotate it, and read it from the environment or a secret store.",
			}})
		}
	}
	return found
}
