package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// temporalVersion is the version in tools/temporal/go.mod.
const temporalVersion = "1.5.1"

// temporalReleases is where Temporal publishes the archives of its command.
const temporalReleases = "https://github.com/temporalio/cli/releases/download"

// temporalSums are the SHA-256 sums of the archives of temporalVersion, by platform.
var temporalSums = map[string]string{
	"darwin_amd64": "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9",
	"darwin_arm64": "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415",
	"linux_amd64":  "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d",
	"linux_arm64":  "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5",
}

// obtainTemporal begins to obtain the temporal command, which can take minutes, and
// returns a function that waits for its path.
func obtainTemporal(ctx context.Context, s *stack, opts options) func() (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	var path string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		path, err = temporalCommand(ctx, opts, s.out)
	}()
	s.add(func() { cancel(); <-done })
	return func() (string, error) { <-done; return path, err }
}

// temporalCommand returns the path of the temporal command: the one on PATH if it is
// new enough, the one of an earlier run, the released one, or else one that it builds
// from tools/temporal/go.mod.
func temporalCommand(ctx context.Context, opts options, out *progress) (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		text, err := exec.CommandContext(ctx, path, "--version").Output()
		if err == nil && isNewEnough(string(text)) {
			out.say("using %s", path)
			return path, nil
		}
		out.say("not using %s: version 1.5 or later is needed", path)
	}
	kept := filepath.Join(opts.binDir(), "temporal")
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	incomplete := kept + "-" + rand.Text() // another devstack may be obtaining it, too
	defer func() { _ = os.Remove(incomplete) }()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	url := fmt.Sprintf("%s/v%s/temporal_cli_%[2]s_%s.tar.gz", temporalReleases, temporalVersion, platform)
	err := out.during("downloading the Temporal server", func() error { return download(ctx, url, temporalSums[platform], incomplete) })
	if err != nil {
		out.say("building the Temporal server instead, which takes minutes the first time: %v", err)
		version := "-X github.com/temporalio/cli/temporalcli.Version=" + temporalVersion
		err = goBuild(ctx, out, "the Temporal server", filepath.Join(opts.root, "tools", "temporal"),
			"-o", incomplete, "-ldflags", version, "github.com/temporalio/cli/cmd/temporal")
	}
	if err != nil {
		return "", err
	}
	return kept, os.Rename(incomplete, kept)
}

// download writes the file temporal of the archive at url to path, if the archive has
// the SHA-256 sum. It gives up early: the alternative is to build.
func download(ctx context.Context, url, sum, path string) error {
	if sum == "" {
		return fmt.Errorf("no release of Temporal is known for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("download %s: %s", url, reply.Status)
	}
	const limit = 256 << 20
	archive, err := io.ReadAll(io.LimitReader(reply.Body, limit))
	if err != nil {
		return fmt.Errorf("download %s: %w", url, err)
	}
	if got := sha256.Sum256(archive); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("download %s: its SHA-256 is %x, want %s", url, got, sum)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", url, err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("find temporal in %s: %w", url, err)
		}
		if header.Name == "temporal" {
			return writeProgram(path, files)
		}
	}
}

// writeProgram writes an executable file.
func writeProgram(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // it is a command
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// isNewEnough reports whether the output of temporal --version names version 1.5 or
// later. A build without a version prints 0.0.0.
func isNewEnough(text string) bool {
	var major, minor int
	_, err := fmt.Sscanf(text, "temporal version %d.%d", &major, &minor)
	return err == nil && (major > 1 || major == 1 && minor >= 5)
}
