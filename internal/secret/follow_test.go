package secret_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// A followed file is a secret that Follow watches, and what it logs.
type followedFile struct {
	t     *testing.T
	path  string
	value secret.Value
	now   chan os.Signal
	mu    sync.Mutex
	log   bytes.Buffer
}

func (f *followedFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

func (f *followedFile) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// follow starts Follow on a file that holds plain.
func follow(t *testing.T, interval time.Duration, accept func(secret.Value) error) *followedFile {
	t.Helper()
	f := &followedFile{t: t, path: writeFile(t, plain, 0o600), now: make(chan os.Signal)}
	value, err := secret.Lookup("PASSWORD", environment(map[string]string{"PASSWORD_FILE": f.path}))
	if err != nil {
		t.Fatal(err)
	}
	f.value = value
	lg := slog.New(slog.NewTextHandler(f, nil))
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // after the end of the test's context
	running.Go(func() {
		secret.Follow(t.Context(), lg, []secret.Followed{{Name: "PASSWORD", Value: value, Accept: accept}}, interval, f.now)
	})
	return f
}

// replace puts another file in the place of the secret's, as one should.
func (f *followedFile) replace(content string, mode os.FileMode) {
	f.t.Helper()
	fresh := filepath.Join(filepath.Dir(f.path), "fresh")
	err := errors.Join(os.WriteFile(fresh, []byte(content), mode), os.Chmod(fresh, mode), os.Rename(fresh, f.path))
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *followedFile) eventually(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s did not come about; the log:\n%s", what, f.logged())
		}
	}
}

const (
	often = time.Millisecond
	never = time.Hour
)

// Security 9.3.5: a rotation needs no restart; 9.3.3: the log has names only.
func TestFollowTakesWhatTheFileHolds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*followedFile){
		"another file in its place": func(f *followedFile) { f.replace("renewed\n", 0o600) },
		"written in place": func(f *followedFile) {
			if err := os.WriteFile(f.path, []byte("renewed"), 0o600); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, often, nil)
			copied := f.value
			change(f)
			f.eventually("the new secret", func() bool { return f.value.Reveal() == "renewed" })
			if copied.Reveal() != "renewed" {
				t.Error("a copy of the secret has the old one")
			}
			f.eventually("a line in the log", func() bool {
				return strings.Contains(f.logged(), `msg="secret reloaded" secret=PASSWORD`)
			})
			if log := f.logged(); strings.Contains(log, "renewed") {
				t.Errorf("the log shows the secret: %s", log)
			}
			assertMasked(t, "the log", f.logged())
		})
	}
}

func TestFollowReadsAtOnceWhenTold(t *testing.T) {
	t.Parallel()
	f := follow(t, never, nil)
	f.replace("renewed", 0o600)
	time.Sleep(20 * time.Millisecond)
	if f.value.Reveal() != plain {
		t.Fatal("the file was read without a word")
	}
	f.now <- syscall.SIGHUP
	f.eventually("the new secret", func() bool { return f.value.Reveal() == "renewed" })
}

func TestFollowKeepsTheOldSecret(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*followedFile)
		want   string
	}{
		"instead of one everyone can read": {func(f *followedFile) { f.replace("renewed", 0o644) }, "chmod o-rwx it"},
		"instead of an empty one":          {func(f *followedFile) { f.replace("\n", 0o600) }, "which is empty: write the secret into it"},
		"instead of none": {func(f *followedFile) {
			if err := os.Remove(f.path); err != nil {
				f.t.Fatal(err)
			}
		}, "which does not exist: make the file"},
		"instead of one that cannot work": {func(f *followedFile) { f.replace("unusable", 0o600) }, "want a usable one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, often, func(s secret.Value) error {
				if s.Reveal() == "unusable" {
					return errors.New("want a usable one")
				}
				return nil
			})
			tt.change(f)
			f.eventually("an error with the remedy", func() bool { return strings.Contains(f.logged(), tt.want) })
			if !strings.Contains(f.logged(), "level=ERROR") || !strings.Contains(f.logged(), "PASSWORD_FILE names "+f.path) {
				t.Errorf("the log does not name the file: %s", f.logged())
			}
			time.Sleep(20 * often)
			if n := strings.Count(f.logged(), "not reloaded"); n != 1 {
				t.Errorf("the same was logged %d times", n)
			}
			if f.value.Reveal() != plain {
				t.Errorf("the secret is %q", f.value.Reveal())
			}
			f.replace("renewed", 0o600)
			f.eventually("the good secret after the bad one", func() bool { return f.value.Reveal() == "renewed" })
		})
	}
}

func TestFileIsWhereASecretCameFrom(t *testing.T) {
	t.Parallel()
	file := writeFile(t, plain, 0o600)
	written := time.Now().Add(-100 * 24 * time.Hour).Truncate(time.Second)
	if err := os.Chtimes(file, written, written); err != nil {
		t.Fatal(err)
	}
	fromFile, err := secret.Lookup("PASSWORD", environment(map[string]string{"PASSWORD_FILE": file}))
	if err != nil {
		t.Fatal(err)
	}
	if path, when := fromFile.File(); path != file || !when.Equal(written) {
		t.Errorf("came from %q of %s, want %q of %s", path, when, file, written)
	}
	for name, s := range map[string]secret.Value{"unset": {}, "not from a file": secret.New(plain)} {
		if path, when := s.File(); path != "" || !when.IsZero() {
			t.Errorf("%s: came from %q of %s", name, path, when)
		}
	}
}
