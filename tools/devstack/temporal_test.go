package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

func TestIsNewEnough(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)":     true,
		"temporal version 1.5.0":                                true,
		"temporal version 2.0.0 (Server 2.1.0)":                 true,
		"temporal version 1.10.0":                               true,
		"temporal version 1.4.9 (Server 1.28.0, UI 2.39.0)":     false,
		"temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)": false,
		"command not found":                                     false,
		"":                                                      false,
	} {
		if got := isNewEnough(text); got != want {
			t.Errorf("isNewEnough(%q) = %t", text, got)
		}
	}
}

func TestDownloadUnpacksOnlyTheKnownArchive(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, map[string]string{"LICENSE": "text", "temporal": "#!/bin/sh\n"})
	sum := sha256.Sum256(archive)
	empty := archiveOf(t, map[string]string{"LICENSE": "text"})
	emptySum := sha256.Sum256(empty)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
			_, _ = w.Write(archive)
		case "/empty":
			_, _ = w.Write(empty)
		case "/cut":
			w.Header().Set("Content-Length", strconv.Itoa(len(archive)))
			_, _ = w.Write(archive[:len(archive)/2])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct {
		path string
		sum  string
		ok   bool
	}{
		"known":            {"/good", hex.EncodeToString(sum[:]), true},
		"another sum":      {"/good", hex.EncodeToString(emptySum[:]), false},
		"unknown platform": {"/good", "", false},
		"no such release":  {"/none", hex.EncodeToString(sum[:]), false},
		"cut off":          {"/cut", hex.EncodeToString(sum[:]), false},
		"without program":  {"/empty", hex.EncodeToString(emptySum[:]), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "temporal")
			err := download(t.Context(), server.URL+tt.path, tt.sum, path)
			content, readErr := os.ReadFile(path)
			if tt.ok != (err == nil) || tt.ok != (string(content) == "#!/bin/sh\n") || !tt.ok && !errors.Is(readErr, fs.ErrNotExist) {
				t.Errorf("got %v and %q (%v)", err, content, readErr)
			}
		})
	}
}

func archiveOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	out := tar.NewWriter(zipped)
	for name, content := range files {
		testkit.NoError(t, out.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755}))
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	testkit.NoError(t, errors.Join(out.Close(), zipped.Close()))
	return buf.Bytes()
}

// The sums are those of the version that would be built.
func TestTemporalVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../temporal/go.mod")
	testkit.NoError(t, err)
	if !regexp.MustCompile(`(?m)github\.com/temporalio/cli v` + regexp.QuoteMeta(temporalVersion) + `\b`).Match(module) {
		t.Errorf("tools/temporal/go.mod names another version than %s", temporalVersion)
	}
}
