package review

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edits are what happens to code between two versions of a review. The quote is lines[3:len-3].
var edits = map[string]func(lines []string) []string{
	"moved":    func(lines []string) []string { return lines },
	"indented": func(lines []string) []string { return strings.Split("\t"+strings.Join(lines, "\n\t"), "\n") },
	"a line added": func(lines []string) []string {
		return append(lines[:2:2], append([]string{"\tlog.Print(n)"}, lines[2:]...)...)[1:]
	},
	"a line removed": func(lines []string) []string { return append([]string{"", lines[0]}, lines[2:]...) },
	"a word replaced": func(lines []string) []string {
		return strings.Split(strings.ReplaceAll(strings.Join(lines, "\n"), "err", "cause"), "\n")
	},
	"a word of the quote replaced": func(lines []string) []string {
		quote := strings.Replace(lines[3], word.FindString(lines[3]), "renamed", 1)
		return append(append(lines[:3:3], quote), lines[4:]...)
	},
}

// The figures of docs/findings.md: of 400 findings in the Go files of this repository whose
// code was edited, how many are recognised, and how many of the recognised are right. The
// other findings are of the same file and category: on one of the three lines before or
// after, or further away.
func TestEditedFindingsAreRecognised(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../*/*.go")
	var found, missed, others, wrong int
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
		if len(lines) < 120 || found+missed >= 400 {
			continue
		}
		for _, quoted := range []int{1, 4} {
			first := 63
			for len(word.FindAllString(lines[first], -1)) < 3 {
				first++
			}
			at := func(first int) []string { return lines[first-3 : first+quoted+3] }
			reported := finding(path, at(first))
			for _, edit := range edits {
				if reported.Is(finding(path, edit(at(first)))) {
					found++
				} else {
					missed++
				}
			}
			for _, away := range []int{-quoted - 2, -quoted - 1, -quoted, quoted, quoted + 1, quoted + 2, 30} {
				other := at(first + away)
				if word.FindString(strings.Join(other[3:3+quoted], " ")) == "" || strings.TrimSpace(other[3]) == strings.TrimSpace(lines[first]) {
					continue // without code, or with the same code, which is the same finding
				}
				others++
				if reported.Is(finding(path, other)) {
					wrong++
				}
			}
		}
	}
	recall, precision := float64(found)/float64(found+missed), float64(found)/float64(found+wrong)
	t.Logf("%d of %d findings, %d of %d others: recall %.3f, precision %.3f", found, found+missed, wrong, others, recall, precision)
	if found+missed < 400 || recall < .9 || precision < .97 {
		t.Errorf("%d findings, recall %.3f, precision %.3f; want 400, .9 and .97", found+missed, recall, precision)
	}
}
