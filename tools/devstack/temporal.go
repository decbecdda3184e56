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
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/workflows/contract"
)

const (
	temporalNamespace = "criticizer"

	// retention is longer than dead letters wait for a replay: a run past its
	// retention cannot be reset.
	retention = 30 * 24 * time.Hour
)

// A temporalServer is a running server.
type temporalServer struct {
	command string
	address string // host:port
	uiURL   string
}

// startTemporal starts a development server with the project's namespace.
func startTemporal(ctx context.Context, s *stack, opts options, command func() (string, error)) (temporalServer, error) {
	path, err := command()
	if err != nil {
		return temporalServer{}, err
	}
	port, errPort := opts.choosePort(7233)
	uiPort, errUI := opts.choosePort(8233)
	if err := errors.Join(errPort, errUI); err != nil {
		return temporalServer{}, err
	}
	server := temporalServer{command: path, address: localAddress(port), uiURL: "http://" + localAddress(uiPort)}
	proc, err := s.run("temporal", exec.Command(path, temporalArgs(port, uiPort, filepath.Join(s.base, "temporal.db"))...))
	if err == nil {
		err = proc.awaitReady(ctx, 2*time.Minute, server.prepareNamespace)
	}
	if err != nil {
		return temporalServer{}, err
	}
	s.out.say("Temporal on %s, its web page on %s", server.address, server.uiURL)
	return server, nil
}

// temporalArgs returns the arguments of the server. The database is a file: the
// one in memory stays broken after a query is canceled, which happens on a busy
// machine. The file need not survive a crash of the machine; without a journal
// file for each write, a third more reviews run in the same time.
func temporalArgs(port, uiPort int, dbFile string) []string {
	return []string{"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--namespace", temporalNamespace, "--log-level", "warn",
		"--db-filename", dbFile, "--sqlite-pragma", "synchronous=off", "--sqlite-pragma", "journal_mode=wal",
		// By default, timers below one second fire after one second. The jitter of the first retry is shorter.
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="50ms"`,
		// People's changes overtake bots' (docs/deploy/temporal.yaml), as on servers from 1.31 on.
		"--dynamic-config-value", "matching.useNewMatcher=true",
		// One process serves a queue: partitions would only forward tasks. The server divides
		// a rate limit by the number of read partitions, so both numbers are equal.
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// The one history shard hands over more than 20 tasks per second (docs/deploy/temporal.yaml).
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=100",
		// New search attributes can be used immediately.
		"--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=true"}
}

// prepareNamespace sets what start-dev cannot: the retention and the search
// attributes. If it succeeds, the server is ready.
func (t temporalServer) prepareNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	n, err := dialTemporal(ctx, t.address)
	if err != nil {
		return err
	}
	defer n.Close()
	_, err = n.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: temporalNamespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	if err != nil {
		return fmt.Errorf("set the retention of namespace %s: %w", temporalNamespace, err)
	}
	return n.RegisterAttributes(ctx, contract.Attributes()...)
}

func dialTemporal(ctx context.Context, address string) (temporal.Namespace, error) {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return temporal.Dial(ctx, quiet, temporal.Config{Address: address, Name: temporalNamespace})
}

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

// temporalCommand returns the path of the temporal command: on PATH if it is new enough,
// from an earlier run, downloaded, or else built from tools/temporal/go.mod.
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
