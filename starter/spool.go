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
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// A spool keeps on disk the requests that could not be handed to Temporal, one
// file each, until somebody drains it. Any number of processes may use it at
// once: a file appears whole or not at all, the same request has the same file,
// and a request that two of them start is one review.
type spool struct {
	dir   string
	limit int // files it holds at most
}

// suffix tells requests from files that are still being written.
const suffix = ".json"

// put keeps req, and returns when the disk has it. To keep a request twice is
// to keep it once.
func (s spool) put(req review.Request) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make spool directory (starter.spool_dir): %w", err)
	}
	kept, err := s.list()
	if err != nil {
		return err
	}
	if len(kept) >= s.limit {
		return fmt.Errorf("spool %s is full: %d requests (starter.spool_limit)", s.dir, len(kept))
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

// writeDurably writes a file that nobody sees before it is whole and on disk.
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

// syncDir makes a new name in dir outlast a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// drain starts what is kept, oldest first, and forgets what was started. It
// stops at the first that start refuses. What cannot be read stays, is named in
// the error, and holds up nothing.
func (s spool) drain(ctx context.Context, start func(context.Context, review.Request) error) (started int, err error) {
	names, err := s.list()
	if err != nil {
		return 0, err
	}
	var unreadable error
	for _, name := range names {
		req, err := readRequest(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process was faster
		}
		if err != nil {
			unreadable = errors.Join(unreadable, err)
			continue
		}
		if err := start(ctx, req); err != nil {
			return started, errors.Join(err, unreadable)
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return started, fmt.Errorf("forget a started request: %w", err)
		}
		started++
	}
	return started, unreadable
}

func readRequest(name string) (req review.Request, err error) {
	body, err := os.ReadFile(name)
	if err != nil {
		return req, err
	}
	if err = json.Unmarshal(body, &req); err == nil {
		err = req.Validate()
	}
	if err != nil {
		return req, fmt.Errorf("spooled request %s is damaged, remove it: %w", name, err)
	}
	return req, nil
}

// list returns the files of the kept requests, oldest first.
func (s spool) list() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read spool directory (starter.spool_dir): %w", err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, info)
		} // else it is unfinished, or somebody drained it
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
