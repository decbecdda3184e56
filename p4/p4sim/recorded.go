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

	"go.etcd.io/bbolt"
)

// recordedDomain is the domain of the users' mail addresses: the recording has none.
const recordedDomain = "example.com"

// A recordedSource is a depot that was recorded from a server: a file with one
// JSON object per changelist, and an archive of contents.
type recordedSource struct{ changes, archive string }

// findRecorded looks for the files of a recorded depot in a directory.
func findRecorded(dir string) (recordedSource, bool) {
	changes, _ := filepath.Glob(filepath.Join(dir, "*changelists.jsonl"))
	archives, _ := filepath.Glob(filepath.Join(dir, "*contents.tar.gz"))
	if len(changes) != 1 || len(archives) != 1 {
		return recordedSource{}, false
	}
	return recordedSource{changes[0], archives[0]}, true
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

func (r recordedSource) state() (string, error) {
	var state strings.Builder
	for _, name := range []string{r.changes, r.archive} {
		stat, err := os.Stat(name)
		if err != nil {
			return "", fmt.Errorf("look at the recorded depot: %w", err)
		}
		fmt.Fprintf(&state, "%s %d %d ", filepath.Base(name), stat.Size(), stat.ModTime().UnixNano())
	}
	return state.String(), nil
}

func (r recordedSource) feed(b *builder) error {
	if err := r.feedChanges(b); err != nil {
		return fmt.Errorf("read %s: %w", r.changes, err)
	}
	if err := r.feedContents(b); err != nil {
		return fmt.Errorf("read %s: %w", r.archive, err)
	}
	return nil
}

func (r recordedSource) feedChanges(b *builder) error {
	file, err := os.Open(r.changes)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var c recordedChange
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := b.addRecorded(c); err != nil {
			return err
		}
	}
}

func (b *builder) addRecorded(c recordedChange) error {
	var revs []revision
	for _, f := range c.Files {
		revs = append(revs, revision{Path: raw(f.DepotFile), Rev: f.Rev, Action: f.Action, Type: f.Type, Content: f.Archive})
	}
	if err := b.addUser(user{Name: c.User, Email: c.User + "@" + recordedDomain, FullName: c.User}); err != nil {
		return err
	}
	return b.addChange(&change{
		Number: c.Change, User: c.User, Client: c.Client, Time: c.Time, Desc: raw(c.Desc), Pending: c.Status == "pending",
	}, revs)
}

func (r recordedSource) feedContents(b *builder) error {
	file, err := os.Open(r.archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
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
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := b.addContent(path.Base(header.Name), content); err != nil {
			return err
		}
	}
}

func (r recordedSource) contents(tx *bbolt.Tx) contents { return stored{tx} }
