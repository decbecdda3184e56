package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

func request(cl review.Changelist) review.Request {
	return review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
}

// spoolWith returns a spool in a directory that does not exist yet.
func spoolWith(t *testing.T, kept ...review.Changelist) spool {
	t.Helper()
	s := spool{filepath.Join(t.TempDir(), "spool"), 10}
	for i, cl := range kept {
		testkit.NoError(t, s.put(request(cl)))
		names, err := filepath.Glob(filepath.Join(s.dir, "*"))
		if err != nil || len(names) != i+1 {
			t.Fatalf("spool holds %v, %v", names, err)
		}
	}
	return s
}

// drainAll drains s into a list. The start of a changelist in failing fails.
func drainAll(s spool, failing map[review.Changelist]error) (list []review.Changelist, err error) {
	_, err = s.drain(context.Background(), func(_ context.Context, req review.Request) error {
		if err := failing[req.Changelist]; err != nil {
			return err
		}
		list = append(list, req.Changelist)
		return nil
	})
	return list, err
}

func TestDrainStartsOldestFirst(t *testing.T) {
	t.Parallel()
	s := spoolWith(t)
	for i, cl := range []review.Changelist{30, 10, 20} {
		testkit.NoError(t, s.put(request(cl)))
		names, err := s.list()
		testkit.NoError(t, err)
		for _, name := range names { // file times are too coarse to order the files
			if req, err := readRequest(name); err == nil && req.Changelist == cl {
				at := time.Unix(int64(1000+i), 0)
				testkit.NoError(t, os.Chtimes(name, at, at))
			}
		}
	}
	if got, err := drainAll(s, nil); err != nil || !slices.Equal(got, []review.Changelist{30, 10, 20}) {
		t.Errorf("drained %v, %v, want oldest first", got, err)
	}
	if got, err := drainAll(s, nil); err != nil || got != nil {
		t.Errorf("drained %v, %v from an empty spool", got, err)
	}
}

func TestSpoolIsPrivate(t *testing.T) {
	t.Parallel()
	s := spoolWith(t, 1)
	names, err := s.list()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for name, want := range map[string]os.FileMode{s.dir: 0o700, names[0]: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

func TestSpoolStoresARequestOnce(t *testing.T) {
	t.Parallel()
	s := spoolWith(t, 1)
	testkit.NoError(t, s.put(request(1)))
	if got, err := drainAll(s, nil); err != nil || len(got) != 1 {
		t.Errorf("drained %v, %v", got, err)
	}
}

func TestSpoolHasALimit(t *testing.T) {
	t.Parallel()
	s := spoolWith(t, 1, 2)
	s.limit = 2
	if err := s.put(request(3)); err == nil || !strings.Contains(err.Error(), "is full") {
		t.Errorf("a third request in a spool of two ended with %v", err)
	}
}

// Each request is independent: one that cannot be started does not block later ones.
func TestDrainAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure        error
		started, later []review.Changelist
		setAside       int
	}{
		"refused for good":   {serviceerror.NewInvalidArgument("no such attribute"), []review.Changelist{1, 3}, nil, 1},
		"refused this time":  {errors.New("no such review"), []review.Changelist{1, 3}, []review.Changelist{2}, 0},
		"Temporal is down":   {serviceerror.NewUnavailable("down"), []review.Changelist{1}, []review.Changelist{2, 3}, 0},
		"Temporal is silent": {serviceerror.NewDeadlineExceeded("late"), []review.Changelist{1}, []review.Changelist{2, 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spoolWith(t, 1, 2, 3)
			names, err := filepath.Glob(filepath.Join(s.dir, "*"))
			testkit.NoError(t, err)
			for _, file := range names { // file times are too coarse to order the files
				if req, err := readRequest(file); err != nil || os.Chtimes(file, time.Time{}, time.Unix(int64(req.Changelist), 0)) != nil {
					t.Fatal(err)
				}
			}
			if got, err := drainAll(s, map[review.Changelist]error{2: tt.failure}); !errors.Is(err, tt.failure) || !slices.Equal(got, tt.started) {
				t.Errorf("started %v, %v, want %v", got, err, tt.started)
			}
			if got, err := drainAll(s, nil); err != nil || !slices.Equal(got, tt.later) {
				t.Errorf("later started %v, %v, want %v", got, err, tt.later)
			}
			if names, err := filepath.Glob(filepath.Join(s.dir, "*"+setAsideSuffix)); err != nil || len(names) != tt.setAside {
				t.Errorf("%v, %v were set aside, want %d", names, err, tt.setAside)
			}
		})
	}
}

// The exported state of the spool is that after the drain, even if Temporal is down.
func TestSpoolIsExported(t *testing.T) {
	t.Parallel()
	s, file, now := spoolWith(t, 1, 2), filepath.Join(t.TempDir(), "criticizer.prom"), time.Now()
	requests, err := s.list()
	testkit.NoError(t, err)
	for i, name := range requests {
		testkit.NoError(t, os.Chtimes(name, time.Time{}, now.Add(-time.Hour*time.Duration(i+1))))
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(s.dir, "bad.json"), nil, 0o600))
	want := func(text string) {
		t.Helper()
		testkit.NoError(t, s.export(file, now))
		got, err := os.ReadFile(file)
		if info, errStat := os.Stat(file); err != nil || errStat != nil || info.Mode().Perm() != 0o644 || string(got) != fmt.Sprintf(text, now.Unix()) {
			t.Errorf("exported %q with mode %v, %v, %v", got, info.Mode(), err, errStat)
		}
	}
	down := serviceerror.NewUnavailable("down")
	if _, err := drainAll(s, map[review.Changelist]error{1: down, 2: down}); !errors.Is(err, down) {
		t.Errorf("drained: %v", err)
	}
	want("criticizer_spool_requests 3\ncriticizer_spool_oldest_seconds 7200\ncriticizer_spool_set_aside 0\ncriticizer_spool_drained_timestamp_seconds %d\n")
	if _, err := drainAll(s, nil); !errors.Is(err, errDamaged) {
		t.Errorf("drained: %v", err)
	}
	want("criticizer_spool_requests 0\ncriticizer_spool_oldest_seconds 0\ncriticizer_spool_set_aside 1\ncriticizer_spool_drained_timestamp_seconds %d\n")
}

func TestDrainSetsDamagedFilesAside(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"cut short":      `{"changelist":1,`,
		"no request":     `{}`,
		"an invalid key": `{"changelist":1,"review_version":1,"idempotency_key":"../x"}`,
		"nothing at all": "",
		"not a number":   `{"changelist":"x"}`,
		"enormous":       `{"changelist":1,"review_version":1,"idempotency_key":"x"` + strings.Repeat(" ", 1<<20) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spoolWith(t, 7)
			testkit.NoError(t, os.WriteFile(filepath.Join(s.dir, "bad.json"), []byte(body), 0o600))
			if got, err := drainAll(s, nil); !errors.Is(err, errDamaged) || !slices.Equal(got, []review.Changelist{7}) {
				t.Errorf("drained %v, %v", got, err)
			}
			if kept, err := os.ReadFile(filepath.Join(s.dir, "bad.json"+setAsideSuffix)); err != nil || string(kept) != body {
				t.Errorf("set aside is %q, %v", kept, err)
			}
		})
	}
}

// A read of a named pipe would never end.
func TestDrainSetsOtherThanFilesAside(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("nowhere", path) },
	} {
		s := spoolWith(t, 7)
		bad := filepath.Join(s.dir, "bad.json")
		testkit.NoError(t, create(bad))
		got, err := drainAll(s, nil)
		if _, aside := os.Lstat(bad + setAsideSuffix); !errors.Is(err, errDamaged) || aside != nil || !slices.Equal(got, []review.Changelist{7}) {
			t.Errorf("%s: drained %v, %v, %v", name, got, err, aside)
		}
	}
}

func TestSpoolIgnoresUnfinishedFiles(t *testing.T) {
	t.Parallel()
	s := spoolWith(t, 7)
	testkit.NoError(t, os.WriteFile(filepath.Join(s.dir, "unfinished-1"), []byte("{"), 0o600))
	if got, err := drainAll(s, nil); err != nil || len(got) != 1 {
		t.Errorf("drained %v, %v", got, err)
	}
}

// Another account that may write to the directory could start reviews.
func TestSpoolOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[os.FileMode]bool{0o700: false, 0o750: true, 0o770: true, 0o707: true, 0o777: true} {
		s := spool{dir: t.TempDir(), limit: 10}
		testkit.NoError(t, os.Chmod(s.dir, mode))
		started := false
		_, errDrain := s.drain(t.Context(), func(context.Context, review.Request) error { started = true; return nil })
		errPut := s.put(review.Request{Changelist: 1, Version: 1, Key: "k"})
		if (errDrain != nil) != refused || (errPut != nil) != refused || started {
			t.Errorf("mode %o: %v, %v", mode, errDrain, errPut)
		}
	}
}
