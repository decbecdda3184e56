package criticizer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// binaries are the committed files that are neither text nor images, as patterns.
var binaries = []string{
	"review/outline/grammars/*.wasm.gz", // by grammars/build.sh, which needs a compiler for WebAssembly
}

// A binary file cannot be reviewed, and stays in the history of every clone: a compiled
// program or an archive is committed by mistake.
func TestNoBinaryFiles(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("SKIPPED: the tree is not a git clone")
	}
	list, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("list the committed files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if isBinary(name, content) && !slices.ContainsFunc(binaries, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
			t.Errorf("%s is binary: generate it, or list it in binaries_test.go", name)
		}
	}
}

func isBinary(name string, content []byte) bool {
	text := utf8.Valid(content) && !bytes.ContainsRune(content, 0)
	return !text && !slices.Contains([]string{".png", ".jpg", ".gif"}, path.Ext(name))
}

func TestBinaryFilesAreFound(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{"\x7fELF\x00": true, "\x1f\x8b\x08": true, "package a\n": false, "für": false} {
		if isBinary("file", []byte(content)) != want || isBinary("picture.png", []byte(content)) {
			t.Errorf("%q: binary is %t, and a picture is allowed", content, !want)
		}
	}
}
