package review

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edits are what happens to code between two versions of a review.
var edits = map[string]func(lines []string) []string{
	"moved":    func(lines []string) []string { return lines },
	"indented": func(lines []string) []string { return strings.Split("\t"+strings.Join(lines, "\n\t"), "\n") },
	"a line added": func(lines []string) []string {
		return append(lines[:3:3], append([]string{"\tlog.Print(n)"}, lines[3:]...)...)
	},
	"a line removed": func(lines []string) []string { return append(lines[:3:3], lines[4:]...) },
	"a word replaced": func(lines []string) []string {
		return strings.Split(strings.ReplaceAll(strings.Join(lines, "\n"), "err", "cause"), "\n")
	},
}

// The figures of docs/findings.md: of 200 findings in the Go files of this repository whose
// code was edited, how many are recognised, and how many of the recognised are right. The
// other finding is of the same file and category.
func TestEditedFindingsAreRecognised(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../*/*.go")
	var found, missed, wrong int
	finding := func(path string, lines []string) Likeness {
		return Finding{
			Path: path, Category: CategoryCorrectness, Before: strings.Join(lines[:3], "\n"), Quote: strings.Join(lines[3:len(lines)-3], "\n"),
			After: strings.Join(lines[len(lines)-3:], "\n"),
		}.Likeness()
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		if len(lines) < 120 || found+missed >= 200 {
			continue
		}
		reported, other := lines[60:70], lines[90:100]
		for _, edit := range edits {
			if finding(path, reported).Is(finding(path, edit(reported))) {
				found++
			} else {
				missed++
			}
		}
		for range edits {
			if finding(path, reported).Is(finding(path, other)) {
				wrong++
			}
		}
	}
	recall, precision := float64(found)/float64(found+missed), float64(found)/float64(found+wrong)
	t.Logf("%d findings: recall %.3f, precision %.3f", found+missed, recall, precision)
	if found+missed < 200 || recall < .9 || precision < .97 {
		t.Errorf("%d findings, recall %.3f, precision %.3f; want 200, .9 and .97", found+missed, recall, precision)
	}
}
