package criticizer_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// namedTest matches a test as the pages name it: `folder/file_test.go:TestName`.
var namedTest = regexp.MustCompile("`([A-Za-z0-9/_-]+_test\\.go):((?:Test|Fuzz)[A-Za-z0-9]+)`")

// The pages on security name tests that exist, and every row of a table with a column
// "test" names at least one.
func TestSecurityPagesNameTests(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"docs/security.md": 20, "docs/threat-model.md": 40} {
		text := readPage(t, page)
		named := namedTest.FindAllStringSubmatch(text, -1)
		if len(named) < least {
			t.Errorf("%s names %d tests, want at least %d", page, len(named), least)
		}
		for _, match := range named {
			if !regexp.MustCompile(`(?m)^func ` + match[2] + `\(`).MatchString(readPage(t, match[1])) {
				t.Errorf("%s: %s is not in %s", page, match[2], match[1])
			}
		}
		for _, row := range rowsWithoutTest(text) {
			t.Errorf("%s: no test in the row %s", page, row)
		}
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
