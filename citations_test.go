package criticizer_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// citation matches a reference to a specification document, in any spelling.
var citation = regexp.MustCompile(`\b(criticizer-processing|review-notification|complaint-rewrite-queue|processing|notification|security|queue|rewrite) (\d+(?:\.\d+)*(?:, \d+(?:\.\d+)*)*)`)

// namedPage matches a page as comments and messages name it.
var namedPage = regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)

// A comment cites a specification as docs/requirements.md introduces it, and the
// section it cites, a section above it or one below it, has a row there. The pages that
// the source names exist.
func TestCitationsAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for section := strings.TrimSpace(cells[1]); section != ""; section = strings.TrimSuffix(section, path.Ext(section)) {
				listed[section] = true
				if path.Ext(section) == "" {
					break
				}
			}
		}
	}
	cited := 0
	err = fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && foreign(os.DirFS("."), name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" && path.Ext(name) != ".sql" || name == "citations_test.go":
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, page := range namedPage.FindAllString(string(source), -1) {
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s names %s, which does not exist", name, page)
			}
		}
		for line := range strings.Lines(string(source)) {
			if !strings.Contains(line, "//") && !strings.Contains(line, "--") {
				continue
			}
			for _, match := range citation.FindAllStringSubmatch(line, -1) {
				for section := range strings.SplitSeq(match[2], ", ") {
					cited++
					if !isListed(listed, match[1], section) {
						t.Errorf("%s cites %s %s, which docs/requirements.md does not list", name, match[1], section)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if cited == 0 {
		t.Error("no citation was found: this test no longer reads the tree")
	}
}

// isListed reports whether the section, or one above it, has a row.
func isListed(listed map[string]bool, document, section string) bool {
	for ; section != "."; section = strings.TrimSuffix(section, path.Ext(section)) {
		if listed[document+" "+section] {
			return true
		}
		if path.Ext(section) == "" {
			break
		}
	}
	return false
}
