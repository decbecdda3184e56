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

// A recordedDepot is a depot that was recorded from a server: a file with one
// JSON object per changelist, and an archive of contents.
type recordedDepot struct{ changes, archive string }

// findRecorded looks for the files of a recorded depot in a directory.
func findRecorded(dir string) (*recordedDepot, bool) {
	changes, _ := filepath.Glob(filepath.Join(dir, "*changelists.jsonl"))
	archives, _ := filepath.Glob(filepath.Join(dir, "*contents.tar.gz"))
	if len(changes) != 1 || len(archives) != 1 {
		return nil, false
	}
	return &recordedDepot{changes[0], archives[0]}, true
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

func (r *recordedDepot) state() (string, error) {
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

func (r *recordedDepot) history() (*history, error) {
	file, err := os.Open(r.changes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	h := newHistory()
	if err := h.unpack(r.archive); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.archive, err)
	}
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

// unpack adds the contents of an archive, by the base name of each file.
func (h *history) unpack(archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for packed := tar.NewReader(unzipped); ; {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if h.contents[path.Base(header.Name)], err = io.ReadAll(packed); err != nil {
			return err
		}
	}
}
