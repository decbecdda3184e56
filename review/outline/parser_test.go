package outline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// A second process reads what the first compiled. A damaged file costs a compilation.
func TestCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := func() (found []string) {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		testkit.NoError(t, err)
		return found
	}
	for _, state := range []string{"empty", "filled", "damaged"} {
		if state == "damaged" {
			testkit.NoError(t, os.WriteFile(files()[0], []byte("WAZEVO"), 0o600))
		}
		if _, err := newParser(dir).parse(t.Context(), languageOf("a.lua"), "x = 1\n"); err != nil || len(files()) != 1 {
			t.Errorf("%s: %v, files %v", state, err, files())
		}
	}
	if _, err := newParser(filepath.Join(files()[0], "x")).parse(t.Context(), languageOf("a.lua"), "x = 1\n"); err != nil {
		t.Errorf("no directory: %v", err)
	}
}
