package review

import (
	"strings"
	"testing"
)

func finding(path, quote string) Finding {
	return Finding{Path: path, Category: CategoryCorrectness, Quote: quote, Title: "about " + quote}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	f := finding("//depot/a.go", "if err != nil {\n\treturn\n}")
	same := f
	same.StartLine, same.Severity, same.Title, same.Confidence = 40, SeverityHigh, "other title", 0.1
	same.Quote = "  if err != nil { return }\r\n"
	if same.Fingerprint() != f.Fingerprint() {
		t.Error("line, severity, wording or white space change the fingerprint")
	}
	for name, change := range map[string]func(*Finding){
		"another file":     func(f *Finding) { f.Path = "//depot/b.go" },
		"another category": func(f *Finding) { f.Category = CategorySecurity },
		"another quote":    func(f *Finding) { f.Quote += " x" },
		"shifted borders":  func(f *Finding) { f.Path, f.Category = f.Path+string(f.Category), "" },
	} {
		other := f
		change(&other)
		if other.Fingerprint() == f.Fingerprint() {
			t.Errorf("%s has the same fingerprint", name)
		}
	}
}

// A rerun reports new, still open and resolved findings. No finding is resolved in a
// file that was not reviewed.
func TestCompare(t *testing.T) {
	t.Parallel()
	earlier := Report{Version: 3, Outcome: OutcomeFindings, Findings: []Finding{
		finding("a.go", "one"), finding("a.go", "two"), finding("b.go", "three"),
	}}
	again := []Finding{finding("a.go", "  one"), finding("a.go", "four")}
	for name, tc := range map[string]struct {
		now                 Report
		new, open           int
		resolved, unchecked string
	}{
		"all was reviewed": {
			Report{Outcome: OutcomeFindings, Findings: again}, 1, 1, "two three", "",
		},
		"nothing is found any more": {Report{Outcome: OutcomeClean}, 0, 0, "one two three", ""},
		"a file was left out": {
			Report{Outcome: OutcomePartial, Findings: again, Coverage: Coverage{NewFileCoverage("b.go", "", SkipOverBudget)}},
			1, 1, "two", "three",
		},
		"nothing was reviewed": {Report{Outcome: OutcomeNotReviewed}, 0, 0, "", "one two three"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Compare(earlier, tc.now)
			if p.Since != 3 || p.New != tc.new || p.StillOpen != tc.open || quotes(p.Resolved) != tc.resolved || quotes(p.Unchecked) != tc.unchecked {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func quotes(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Quote)
	}
	return strings.Join(all, " ")
}
