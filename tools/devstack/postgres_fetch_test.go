package main

import (
	"archive/zip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeServer is a tar.xz of bin/initdb, bin/pg_ctl and bin/postgres: scripts,
// of which the last claims version 18.1.
const fakeServer = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4Cf/AKxdADEaShsO1TDyWxuE7yh9tnRTrysNXAd5THA/YLUyb1DviQL/" +
	"iJFiLB16e0lH3uG/BKDmoCWHLrX66ZXt63V7RB4Q726WjrkzX1Ajr4suBjUqBb/TJDtz6f+871Sg/5LsL8liD4q1R5jqhZvweW12o6Lxkc" +
	"Uqi2so0PvE4/ir6MGnDI5xnMgyuhHOsTemvEEW2a1bO2m5h8g5ifrmBiCr7PLB+YfeMuM8o/9OpgAAgbO973vkMuwAAcgBgFAAAD/5a4Kx" +
	"xGf7AgAAAAAEWVo="

// repository serves fakeServer as a Maven repository does.
func repository(t *testing.T) string {
	t.Helper()
	archive, err := base64.StdEncoding.DecodeString(fakeServer)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		jar := zip.NewWriter(w)
		if f, err := jar.Create("postgres.txz"); err == nil {
			_, _ = f.Write(archive)
		}
		_ = jar.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAMachineWithoutPostgresFetchesIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir()+":/bin:/usr/bin") // sh runs the scripts
	dir := filepath.Join(t.TempDir(), "postgres")
	got, err := fetchPostgres(t.Context(), &progress{w: io.Discard}, repository(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.major != 18 || got.dir != filepath.Join(dir, "bin") {
		t.Errorf("fetched %+v", got)
	}
	if info, err := os.Stat(got.dir); err != nil || info.Mode().Perm()&0o005 != 0o005 {
		t.Errorf("the user Postgres runs as cannot enter %s: %v, %v", got.dir, info.Mode(), err)
	}
}

func TestWhenTheFetchFailsTheErrorNamesThePackages(t *testing.T) {
	t.Parallel()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	_, err := fetchPostgres(t.Context(), &progress{w: io.Discard}, empty.URL, filepath.Join(t.TempDir(), "postgres"))
	if !errors.Is(err, errNoPostgres) {
		t.Fatalf("error %v, want errNoPostgres", err)
	}
	for _, want := range []string{
		"apt-get install postgresql", "brew install postgresql@17", "dnf install postgresql-server", "CRITICIZER_DATABASE_URL",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestAFetchCanBeInterrupted(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := fetchPostgres(ctx, &progress{w: io.Discard}, hanging.URL, filepath.Join(t.TempDir(), "postgres"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}
