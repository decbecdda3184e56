package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// environment returns a getenv that reads vars.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func writeFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	testkit.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	if err := os.Chmod(path, mode); err != nil { // independent of the umask
		t.Fatal(err)
	}
	return path
}

// Credentials come from the environment or from a file that it names (security 9.3.1).
func TestLookup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vars map[string]string
		want string
	}{
		"neither variable": {},
		"the variable":     {map[string]string{"PASSWORD": plain}, plain},
		"the file": {
			map[string]string{"PASSWORD_FILE": writeFile(t, plain, 0o400)}, plain,
		},
		"trailing line ends are removed": {
			map[string]string{"PASSWORD_FILE": writeFile(t, plain+"\r\n\n", 0o600)}, plain,
		},
		"other line ends and spaces are kept": {
			map[string]string{"PASSWORD_FILE": writeFile(t, " a\nb \n", 0o640)}, " a\nb ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := secret.Lookup("PASSWORD", environment(tt.vars))
			testkit.NoError(t, err)
			if got.Reveal() != tt.want || got.IsSet() != (tt.want != "") {
				t.Errorf("found %q (set: %t), want %q", got.Reveal(), got.IsSet(), tt.want)
			}
		})
	}
}

func TestLookupRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vars map[string]string
		want string
	}{
		"variable and file": {
			map[string]string{"PASSWORD": plain, "PASSWORD_FILE": "password"},
			"PASSWORD and PASSWORD_FILE are both set: unset one",
		},
		"a file that does not exist": {
			map[string]string{"PASSWORD_FILE": filepath.Join(t.TempDir(), "none")}, "does not exist",
		},
		"a file everyone can read": {
			map[string]string{"PASSWORD_FILE": writeFile(t, plain, 0o644)}, "chmod o-rwx",
		},
		"a file everyone can write": {
			map[string]string{"PASSWORD_FILE": writeFile(t, plain, 0o602)}, "chmod o-rwx",
		},
		"an empty file": {
			map[string]string{"PASSWORD_FILE": writeFile(t, "", 0o600)}, "which is empty",
		},
		"a file of line ends": {
			map[string]string{"PASSWORD_FILE": writeFile(t, "\n\r\n", 0o600)}, "which is empty",
		},
		"a file too large for a secret": {
			map[string]string{"PASSWORD_FILE": writeFile(t, strings.Repeat(plain, 5000), 0o600)}, "want at most 65536",
		},
		"a directory": {
			map[string]string{"PASSWORD_FILE": privateDir(t)}, "is a directory",
		},
		"an endless device": {
			map[string]string{"PASSWORD_FILE": "/dev/zero"}, "/dev/zero",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := secret.Lookup("PASSWORD", environment(tt.vars))
			if err == nil {
				t.Fatalf("found %d bytes, want an error with %q", len(got.Reveal()), tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "PASSWORD") {
				t.Errorf("error is %q, want the variable and %q in it", err, tt.want)
			}
			assertMasked(t, "the error", err.Error())
			if got.IsSet() {
				t.Error("an error came with a secret")
			}
		})
	}
}

func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dir")
	testkit.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}
