package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// An aacrRecord is a pull request of AACR-Bench (github.com/alibaba/aacr-bench,
// dataset/positive_samples.json), with what reviewers said of it.
type aacrRecord struct {
	URL      string `json:"githubPrUrl"`
	From     string `json:"source_commit"`
	To       string `json:"target_commit"`
	Language string `json:"project_main_language"`
	Comments []struct {
		Path string `json:"path"`
		Note string `json:"note"`
		Side string `json:"side"` // left: of the old text
		From int    `json:"from_line"`
		To   int    `json:"to_line"` // may be before From
	} `json:"comments"`
}

var pullRequest = regexp.MustCompile(`github\.com/([\w.-]+)/([\w.-]+)/pull/(\d+)$`)

// ImportAACR writes a case into dir for each pull request of a file of AACR-Bench, and
// returns how many. The place of a comment is enough to meet it, as in the line metrics of
// that benchmark: its other metrics need a model that judges. A comment on removed code can be met
// anywhere in its file.
func ImportAACR(file, dir string) (cases int, err error) {
	var records []aacrRecord
	if err := readJSON(file, &records); err != nil {
		return 0, err
	}
	for i, r := range records {
		m := pullRequest.FindStringSubmatch(r.URL)
		if m == nil || r.From == "" || r.To == "" || len(r.Comments) == 0 {
			return cases, fmt.Errorf("read %s: record %d lacks a pull request, commits or comments: want positive_samples.json of AACR-Bench", file, i+1)
		}
		y := Case{Language: r.Language, Repository: m[1] + "/" + m[2], Commits: r.From + ".." + r.To}
		for _, c := range r.Comments {
			x := Expectation{Path: c.Path, Says: strings.TrimSpace(c.Note)}
			if first, last := min(c.From, c.To), max(c.From, c.To); c.Side != "left" && first > 0 {
				x.Lines = fmt.Sprintf("%d-%d", first, last)
			}
			y.Expected = append(y.Expected, x)
		}
		text, err := yaml.Dump(y)
		at := filepath.Join(dir, m[1]+"-"+m[2]+"-"+m[3])
		if err = errors.Join(err, os.MkdirAll(at, 0o755)); err == nil { //nolint:gosec // a public benchmark
			err = os.WriteFile(filepath.Join(at, caseFile), text, 0o644) //nolint:gosec // a public benchmark
		}
		if err != nil {
			return cases, err
		}
		cases++
	}
	return cases, nil
}
