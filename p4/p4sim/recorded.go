package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// recordedDomain is the domain of the users' mail addresses: the recording has none.
const recordedDomain = "example.com"

// A recorded is a depot that was recorded from a server: a file with one
// JSON object per changelist, and an archive of contents.
type recorded struct {
	changes, archive string
	files            map[string][]byte // of the archive, by name; nil before the first is read
}

// findRecorded looks for the files of a recorded depot in a directory.
func findRecorded(dir string) (*recorded, bool) {
	changes, _ := filepath.Glob(filepath.Join(dir, "*changelists.jsonl"))
	archives, _ := filepath.Glob(filepath.Join(dir, "*contents.tar.gz"))
	if len(changes) != 1 || len(archives) != 1 {
		return nil, false
	}
	return &recorded{changes: changes[0], archive: archives[0]}, true
}

type recordedChange struct {
	Change int
	User   string
	Client string
	Time   int64
	Status string
	Desc   string
	Files  []recordedFile
}

type recordedFile struct {
	DepotFile string
	Rev       int
	Action    string
	Type      string
	Archive   string
}

func (r *recorded) state() (string, error) {
	var state strings.Builder
	for _, name := range []string{r.changes, r.archive} {
		stat, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&state, "%s %d %d ", filepath.Base(name), stat.Size(), stat.ModTime().UnixNano())
	}
	return state.String(), nil
}

func (r *recorded) history() (*history, error) {
	file, err := os.Open(r.changes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	h := newHistory()
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var c recordedChange
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return h, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.changes, err)
		}
		h.addRecorded(c)
	}
}

func (h *history) addRecorded(c recordedChange) {
	var revs []*revision
	for _, f := range c.Files {
		revs = append(revs, &revision{Path: f.DepotFile, Rev: f.Rev, Action: f.Action, Type: f.Type, Content: f.Archive})
	}
	h.addUser(user{Name: c.User, Email: c.User + "@" + recordedDomain, FullName: c.User})
	h.addChange(&change{
		Number: c.Change, User: c.User, Client: c.Client, Time: c.Time, Desc: c.Desc, Pending: c.Status == "pending",
	}, revs)
}

// content unpacks the archive when it is called for the first time.
func (r *recorded) content(key string) ([]byte, error) {
	if r.files == nil {
		if err := r.unpack(); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.archive, err)
		}
	}
	content, ok := r.files[key]
	if !ok {
		return nil, fmt.Errorf("content %s is not in %s", key, r.archive)
	}
	return content, nil
}

func (r *recorded) close() error { return nil }

func (r *recorded) unpack() error {
	file, err := os.Open(r.archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	r.files = map[string][]byte{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if r.files[path.Base(header.Name)], err = io.ReadAll(archive); err != nil {
			return err
		}
	}
}
