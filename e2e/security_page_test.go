package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/security.md names the test of each promise; the tests are there.
func TestSecurityPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	const promises = 20
	if len(named) < promises {
		t.Errorf("the page names %d tests, want at least %d", len(named), promises)
	}
	for _, m := range named {
		source, err := os.ReadFile(filepath.Join("..", m[1]))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(source), "func "+m[2]+"(t *testing.T)") {
			t.Errorf("%s is not in %s", m[2], m[1])
		}
	}
}
