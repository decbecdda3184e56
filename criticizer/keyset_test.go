package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store/artifact"
)

// Each purpose gets a keyset of its own, which only the owner of the file can read. A
// keyset that exists is kept: without it the stored data is lost.
func TestKeysetCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keysets := func() map[string]bool {
		t.Helper()
		if got := say(t, nil, "keyset", "create", dir); got.status != 0 {
			t.Fatalf("status %d: %s", got.status, got.err)
		}
		found := map[string]bool{}
		for _, purpose := range settings.KeysetPurposes {
			path := filepath.Join(dir, purpose+"-keyset")
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%s: %v, %v", path, info, err)
			}
			text, err := os.ReadFile(path)
			if err != nil || artifact.CheckKeyset(secret.New(string(text)), artifact.KEK{}) != nil {
				t.Fatalf("%s is not a keyset: %v", path, err)
			}
			found[string(text)] = true
		}
		return found
	}
	first := keysets()
	for keyset := range keysets() {
		if len(first) != 4 || !first[keyset] {
			t.Errorf("%d different keysets, kept: %t", len(first), first[keyset])
		}
	}
	checkRefusal(t, "without the directory", say(t, nil, "keyset", "create", filepath.Join(dir, "missing")), 1, "missing")
}

// A key is never replaced: runs at the same time leave the keys of one of them, and no other files.
func TestKeysetCreateAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if got := say(t, nil, "keyset", "create", dir); got.status != 0 {
				t.Errorf("status %d: %s", got.status, got.err)
			}
		})
	}
	running.Wait()
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != 6 {
		t.Errorf("the files are %v, %v", found, err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "redaction-key"))
	if err != nil || len(strings.TrimSpace(string(key))) != 52 {
		t.Errorf("the redaction key has %d bytes, %v", len(key), err)
	}
}

// A rotation adds a key, pruning leaves the newest one (security 9.3.5).
func TestKeysetRotateAndPrune(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keyset")
	made, err := artifact.NewKeyset(artifact.KEK{})
	testkit.NoError(t, err)
	text := made.Reveal()
	for _, step := range []struct {
		command string
		keys    int
	}{{"rotate", 2}, {"rotate", 3}, {"prune", 1}} {
		testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got := say(t, nil, "keyset", step.command, file)
		if text = got.out; got.status != 0 || strings.Count(text, `"keyId"`) != step.keys {
			t.Fatalf("%s: status %d, %d keys, %s; want %d keys", step.command, got.status, strings.Count(text, `"keyId"`), got.err, step.keys)
		}
	}
	for _, command := range []string{"rotate", "prune"} {
		missing := say(t, nil, "keyset", command, file+".missing")
		checkRefusal(t, command+" of no file", missing, 1, "FILE names "+file+".missing, which does not exist")
		contains(t, missing.err, "hint: name the file of a keyset")
	}
}
