package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that docs/security.md names exist.
func TestSecurityPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("`([a-z0-9/_]+_test\\.go):(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(readFile(t, "../docs/security.md"), -1)
	const promises = 20
	if len(named) < promises {
		t.Errorf("the page names %d tests, want at least %d", len(named), promises)
	}
	for _, m := range named {
		if !strings.Contains(readFile(t, filepath.Join("..", m[1])), "func "+m[2]+"(t *testing.T)") {
			t.Errorf("%s is not in %s", m[2], m[1])
		}
	}
}
