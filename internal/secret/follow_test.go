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
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

const interval = 10 * time.Second

// A followedFile is the file of a secret that Follow updates, in a synctest bubble.
type followedFile struct {
	t     *testing.T
	path  string
	value secret.Value
	now   chan os.Signal
	log   bytes.Buffer
}

// follow runs test in a bubble with Follow on a file that holds plain.
func follow(t *testing.T, accept func(secret.Value) error, test func(*testing.T, *followedFile)) {
	t.Helper()
	path := writeFile(t, plain, 0o600)
	synctest.Test(t, func(t *testing.T) {
		f := &followedFile{t: t, path: path, now: make(chan os.Signal)}
		value, err := secret.Lookup("PASSWORD", environment(map[string]string{"PASSWORD_FILE": f.path}))
		testkit.NoError(t, err)
		f.value = value
		lg := slog.New(slog.NewTextHandler(&f.log, nil))
		var running sync.WaitGroup
		t.Cleanup(running.Wait) // after the end of the test's context
		running.Go(func() {
			secret.Follow(t.Context(), lg, []secret.Followed{{Name: "PASSWORD", Value: value, Accept: accept}}, interval, f.now)
		})
		synctest.Wait()
		test(t, f)
	})
}

// tick waits until Follow has checked the file.
func (f *followedFile) tick() {
	time.Sleep(interval)
	synctest.Wait()
}

// replace renames a new file over the secret's, as a rotation should.
func (f *followedFile) replace(content string, mode os.FileMode) {
	f.t.Helper()
	fresh := filepath.Join(filepath.Dir(f.path), "fresh")
	err := errors.Join(os.WriteFile(fresh, []byte(content), mode), os.Chmod(fresh, mode), os.Rename(fresh, f.path))
	testkit.NoError(f.t, err)
}

func TestFollowReadsAChangedFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*followedFile){
		"replaced": func(f *followedFile) { f.replace("renewed\n", 0o600) },
		"written in place": func(f *followedFile) {
			testkit.NoError(f.t, os.WriteFile(f.path, []byte("renewed"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, nil, func(t *testing.T, f *followedFile) {
				copied := f.value
				change(f)
				f.tick()
				if f.value.Reveal() != "renewed" || copied.Reveal() != "renewed" {
					t.Errorf("secret is %q, its copy %q", f.value.Reveal(), copied.Reveal())
				}
				log := f.log.String()
				if !strings.Contains(log, "secret=PASSWORD") || strings.Contains(log, "renewed") {
					t.Errorf("log is %s", log)
				}
				assertMasked(t, "the log", log)
			})
		})
	}
}

func TestFollowReadsAtOnceOnASignal(t *testing.T) {
	t.Parallel()
	follow(t, nil, func(t *testing.T, f *followedFile) {
		f.replace("renewed", 0o600)
		synctest.Wait()
		if f.value.Reveal() != plain {
			t.Fatal("the file was read before the interval ended")
		}
		f.now <- syscall.SIGHUP
		synctest.Wait()
		if f.value.Reveal() != "renewed" {
			t.Error("the file was not read at once")
		}
	})
}

func TestFollowKeepsTheSecretOfAnInvalidFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*followedFile){
		"accessible to others": func(f *followedFile) { f.replace("renewed", 0o644) },
		"empty":                func(f *followedFile) { f.replace("\n", 0o600) },
		"not accepted":         func(f *followedFile) { f.replace("unusable", 0o600) },
		"missing": func(f *followedFile) {
			testkit.NoError(f.t, os.Remove(f.path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accept := func(s secret.Value) error {
				if s.Reveal() == "unusable" {
					return errors.New("want a usable one")
				}
				return nil
			}
			follow(t, accept, func(t *testing.T, f *followedFile) {
				change(f)
				f.tick()
				f.tick()
				log := f.log.String()
				if strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "PASSWORD_FILE names "+f.path) {
					t.Errorf("log is %s, want one error that names the file", log)
				}
				if f.value.Reveal() != plain {
					t.Errorf("secret is %q", f.value.Reveal())
				}
				f.replace("renewed", 0o600)
				f.tick()
				if f.value.Reveal() != "renewed" {
					t.Errorf("after a valid file the secret is %q", f.value.Reveal())
				}
			})
		})
	}
}

func TestFileOfASecret(t *testing.T) {
	t.Parallel()
	file := writeFile(t, plain, 0o600)
	written := time.Now().Add(-100 * 24 * time.Hour).Truncate(time.Second)
	testkit.NoError(t, os.Chtimes(file, written, written))
	fromFile, err := secret.Lookup("PASSWORD", environment(map[string]string{"PASSWORD_FILE": file}))
	testkit.NoError(t, err)
	if path, when := fromFile.File(); path != file || !when.Equal(written) {
		t.Errorf("came from %q of %s, want %q of %s", path, when, file, written)
	}
	for name, s := range map[string]secret.Value{"unset": {}, "not from a file": secret.New(plain)} {
		if path, when := s.File(); path != "" || !when.IsZero() {
			t.Errorf("%s: came from %q of %s", name, path, when)
		}
	}
}
