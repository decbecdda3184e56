package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
)

// A spool keeps requests that Temporal did not accept on disk, one file per
// request. Any number of processes may use it at a time: files appear atomically,
// the name of a file derives from the request, and two starts of a request are one
// review.
type spool struct {
	dir   string
	limit int // files
}

// maxSpooled bounds the files of a spool, about 40 MB on disk.
const maxSpooled = 10_000

// suffix is the end of a request's file name. Files being written lack it.
const suffix = ".json"

// put writes req to disk and syncs it. Putting a request twice has the effect of
// once.
func (s spool) put(req review.Request) error {
	if _, err := s.open(); err != nil {
		return err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	name := fmt.Sprintf("%x%s", sha256.Sum256([]byte(req.Key)), suffix)
	if err := writeDurably(s.dir, name, body); err != nil {
		return fmt.Errorf("spool request: %w", err)
	}
	return nil
}

// writeDurably writes a file, syncs it and then gives it its name.
func writeDurably(dir, name string, body []byte) error {
	f, err := os.CreateTemp(dir, "unfinished-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// syncDir makes a new name in dir survive a power failure. Windows cannot sync a
// directory.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// setAsideSuffix is added to the name of a request that cannot be started. Renamed
// back, the next drain tries it again.
const setAsideSuffix = ".refused"

// drain starts the requests, oldest first, and deletes the started ones. The requests are
// independent: one that Temporal refuses, or that cannot be read, is set aside; after any
// other failure it stays. The error names both kinds. drain ends early if the next
// request would fail, too.
func (s spool) drain(ctx context.Context, start func(context.Context, review.Request) error) (started int, err error) {
	names, err := s.list()
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, name := range names {
		req, err := readRequest(name)
		if err == nil {
			err = start(ctx, req)
		}
		switch {
		case err == nil:
			err = os.Remove(name)
			started++
		case isRefused(err):
			err = errors.Join(fmt.Errorf("set aside as %s%s: %w", name, setAsideSuffix, err), os.Rename(name, name+setAsideSuffix))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else another process started it
			failed = append(failed, err)
		}
		if ctx.Err() != nil || isOutage(err) {
			break
		}
	}
	return started, errors.Join(failed...)
}

// export writes the state of the spool for the textfile collector of Prometheus's node
// exporter (docs/observability.md).
func (s spool) export(file string, now time.Time) error {
	requests, err := s.list()
	aside, errAside := filepath.Glob(filepath.Join(s.dir, "*"+suffix+setAsideSuffix))
	if err = errors.Join(err, errAside); err != nil {
		return err
	}
	oldest := now
	if len(requests) > 0 {
		if info, err := os.Stat(requests[0]); err == nil {
			oldest = info.ModTime()
		}
	}
	text := fmt.Sprintf("criticizer_spool_requests %d\ncriticizer_spool_oldest_seconds %.0f\ncriticizer_spool_set_aside %d\ncriticizer_spool_drained_timestamp_seconds %d\n",
		len(requests), max(0, now.Sub(oldest).Seconds()), len(aside), now.Unix())
	if err := writeDurably(filepath.Dir(file), filepath.Base(file), []byte(text)); err != nil {
		return fmt.Errorf("write metrics of the spool: %w", err)
	}
	return os.Chmod(file, 0o644) //nolint:gosec // the collector has another account
}

// isRefused reports whether a start of the same request fails again.
func isRefused(err error) bool {
	_, invalid := errors.AsType[*serviceerror.InvalidArgument](err)
	return invalid || isTaken(err) || errors.Is(err, errDamaged)
}

// isOutage reports whether the start of any other request fails, too.
func isOutage(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	return unavailable || late || exhausted
}

var errDamaged = errors.New("the file is damaged")

// maxRequest bounds the file of a request, in bytes: put writes a few hundred.
const maxRequest = 64 << 10

func readRequest(name string) (req review.Request, err error) {
	info, err := os.Lstat(name)
	if err != nil {
		return req, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRequest {
		return req, fmt.Errorf("%w: it is not a regular file of at most %d bytes", errDamaged, maxRequest)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return req, err
	}
	if err = json.Unmarshal(body, &req); err == nil {
		err = req.Validate()
	}
	if err != nil {
		return req, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return req, nil
}

// list returns the files of the requests, oldest first.
func (s spool) list() ([]string, error) {
	info, err := os.Stat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && secret.Exposed(info, 0o077) {
		return nil, fmt.Errorf("spool directory %s (starter.spool_dir) is accessible to other accounts, who could start reviews: run chmod 700 %[1]q", s.dir)
	}
	entries, errRead := os.ReadDir(s.dir)
	if err = errors.Join(err, errRead); err != nil {
		return nil, fmt.Errorf("read spool directory (starter.spool_dir): %w", err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, info)
		} // else it is unfinished or was drained meanwhile
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var names []string
	for _, f := range files {
		names = append(names, filepath.Join(s.dir, f.Name()))
	}
	return names, nil
}

func (a *app) drain() *cobra.Command {
	var metrics string
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Start the spooled reviews",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer cli.Progress(cmd.ErrOrStderr(), cmd.CommandPath())()
			cfg, err := trigger.Load(a.configPath, a.getenv)
			if err != nil {
				return err
			}
			started := 0
			n, err := connect(cmd.Context(), cfg)
			if err == nil {
				defer n.Close()
				started, err = drainSpool(cmd.Context(), cfg, n)
			}
			if metrics != "" {
				err = errors.Join(err, newSpool(cfg).export(metrics, time.Now()))
			}
			_, printErr := fmt.Fprintf(cmd.OutOrStdout(), "started %d spooled reviews\n", started)
			return errors.Join(err, printErr)
		},
	}
	cmd.Flags().StringVar(&metrics, "metrics", "", "write the state of the spool to this `FILE` for Prometheus, even if Temporal does not answer")
	return cmd
}

func newSpool(cfg *trigger.Config) spool {
	return spool{dir: cfg.Starter.SpoolDir, limit: maxSpooled}
}

func drainSpool(ctx context.Context, cfg *trigger.Config, n temporal.Namespace) (int, error) {
	return newSpool(cfg).drain(ctx, func(ctx context.Context, req review.Request) error {
		_, err := startReview(ctx, cfg, n, req, false)
		return err
	})
}

// open makes the directory and returns the number of requests that wait; a full spool is an
// error.
func (s spool) open() (waiting int, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return 0, fmt.Errorf("make spool directory (starter.spool_dir): %w", err)
	}
	requests, err := s.list()
	if err == nil && len(requests) >= s.limit {
		err = fmt.Errorf("spool %s is full: %d requests: to start them: criticizer-starter drain", s.dir, len(requests))
	}
	return len(requests), err
}

// check makes a file as put does, and returns the number of requests that wait.
func (s spool) check() (waiting int, err error) {
	if waiting, err = s.open(); err != nil {
		return 0, err
	}
	const name = "install-check" // no request: those end in another way
	if err := errors.Join(writeDurably(s.dir, name, nil), os.Remove(filepath.Join(s.dir, name))); err != nil {
		return 0, fmt.Errorf("write to the spool (starter.spool_dir): %w", err)
	}
	return waiting, nil
}
