package criticizer_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest matches a test as the pages name it: `folder/file_test.go:TestName`.
var namedTest = regexp.MustCompile("`([A-Za-z0-9/_-]+_test\\.go):((?:Test|Fuzz)[A-Za-z0-9]+)`")

// namedFunction matches a function or method as docs/requirements.md names it:
// `folder/file.go:Function` or `folder/file.go:Type.Method`.
var namedFunction = regexp.MustCompile("`([A-Za-z0-9/_-]+\\.go):(?:([A-Za-z]+)\\.)?([A-Za-z]+)`")

// The pages name tests that exist and run in CI, and functions that exist. Every row of
// a table with a column "test" names at least one test.
func TestPagesNameTests(t *testing.T) {
	t.Parallel()
	skipped := readPage(t, "tools/skips.txt")
	for page, least := range map[string]int{"docs/threat-model.md": 40, "docs/requirements.md": 100} {
		text := readPage(t, page)
		named := namedTest.FindAllStringSubmatch(text, -1)
		if len(named) < least {
			t.Errorf("%s names %d tests, want at least %d", page, len(named), least)
		}
		for _, match := range named {
			if !declares(readPage(t, match[1]), "", match[2]) {
				t.Errorf("%s: %s is not in %s", page, match[2], match[1])
			}
			if isSkipped(skipped, path.Dir(match[1]), match[2]) {
				t.Errorf("%s: CI skips %s of %s", page, match[2], match[1])
			}
		}
		for _, match := range namedFunction.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(match[1], "_test.go") && !declares(readPage(t, match[1]), match[2], match[3]) {
				t.Errorf("%s: %s does not declare %s.%s", page, match[1], match[2], match[3])
			}
		}
		for _, row := range rowsWithoutTest(text) {
			t.Errorf("%s: no test in the row %s", page, row)
		}
	}
}

// namedPath matches a file or folder as CONTRIBUTING.md names it.
var namedPath = regexp.MustCompile("`([a-z0-9]+/[a-z0-9/_*.-]*)`")

// The table of changes in CONTRIBUTING.md names files and folders that exist.
func TestContributingNamesFiles(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(readPage(t, "CONTRIBUTING.md")) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, match := range namedPath.FindAllStringSubmatch(line, -1) {
			n++
			if found, err := filepath.Glob(match[1]); err != nil || len(found) == 0 {
				t.Errorf("CONTRIBUTING.md names %s, which does not exist", match[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("%d files were found: this test does not read the table", n)
	}
}

// rowsWithoutTest returns the rows without a test of the tables whose last column is "test".
func rowsWithoutTest(page string) []string {
	var missing []string
	tested := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			tested = false
		case strings.HasSuffix(line, "| test |"):
			tested = true
		case tested && !strings.HasPrefix(line, "|---") && !namedTest.MatchString(line):
			missing = append(missing, line)
		}
	}
	return missing
}

// declares reports whether a Go source declares the function, or the method of the type.
func declares(source, receiver, name string) bool {
	if receiver != "" {
		receiver = `\([a-z]* ?\*?` + receiver + `\) `
	}
	return regexp.MustCompile(`(?m)^func ` + receiver + name + `[\[(]`).MatchString(source)
}

// isSkipped reports whether tools/skips.txt lists the test, not only a part of it.
func isSkipped(skips, folder, test string) bool {
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(folder) + ` ` + test + ` `).MatchString(skips)
}

func TestWrongNamesAreFound(t *testing.T) {
	t.Parallel()
	const source = "func New() {}\nfunc (s *Store) Get(id string) {}\nfunc newer[T any](t T) {}\n"
	for name, want := range map[[2]string]bool{
		{"", "New"}: true, {"Store", "Get"}: true, {"", "newer"}: true,
		{"", "Get"}: false, {"Store", "New"}: false, {"", "Ne"}: false, {"Other", "Get"}: false,
	} {
		if declares(source, name[0], name[1]) != want {
			t.Errorf("declares(%q) is %v", name, !want)
		}
	}
	if skips := "e2e TestChaos takes minutes\n"; !isSkipped(skips, "e2e", "TestChaos") || isSkipped(skips, "e2e", "TestChao") || isSkipped(skips, "p4", "TestChaos") {
		t.Error("skipped tests are not recognized")
	}
}

func TestRowsWithoutTestAreFound(t *testing.T) {
	t.Parallel()
	const page = "| attack | test |\n|---|---|\n| a | `p4/a_test.go:TestA` |\n| b | later |\n\n| role | may |\n|---|---|\n| r | read |\n"
	if got := rowsWithoutTest(page); len(got) != 1 || got[0] != "| b | later |" {
		t.Errorf("rows are %q, want that of b", got)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
