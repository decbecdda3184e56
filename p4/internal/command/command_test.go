package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// The command is resolved once, to an absolute path (security 9.2.3).
func TestCommandIsResolvedFromPath(t *testing.T) {
	dir := t.TempDir()
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "p4"), []byte("x"), 0o700))
	t.Setenv("PATH", dir)
	path, err := LookPath("p4")
	if err != nil || path != filepath.Join(dir, "p4") {
		t.Errorf("LookPath = %q, %v", path, err)
	}
	t.Setenv("PATH", ".")
	t.Chdir(dir)
	if path, err := LookPath("p4"); err == nil {
		t.Errorf("the command is resolved to the working directory: %q", path)
	}
}

// p4 explains a ticket file that it cannot read by a failure of the login: the file is named
// before that.
func TestFilesOfOthersAreNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	for _, name := range []string{"p4tickets", "p4trust"} {
		dir := t.TempDir()
		testkit.NoError(t, os.Chmod(dir, 0o700))
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o000))
		if err := MakeDir(dir); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "chown") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
