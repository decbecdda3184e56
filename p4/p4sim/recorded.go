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

// The files of a recorded depot.
const (
	recordedChanges  = "jam-changelists.jsonl"
	recordedContents = "jam-contents.tar.gz"
)

// What the recordings show of accounts that the recorded changelists do not
// hold: when they were last seen, and the one subscription there is.
const (
	recordedUpdate = 1491315954
	recordedAccess = 1499682965
	recordedDomain = "example.com"
)

var recordedReviewer = user{
	Name: "laura", Email: "laura@" + recordedDomain, FullName: "Laura Wingerd", Reviews: []string{"//depot/jam/..."},
}

// A recordedSource is a depot that was taken from a real server: one JSON
// object per changelist, and an archive of contents.
type recordedSource struct{ dir string }

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
	ModTime   int64
	Archive   string
}

func (r recordedSource) state() (string, error) {
	var state strings.Builder
	for _, name := range []string{recordedChanges, recordedContents} {
		stat, err := os.Stat(filepath.Join(r.dir, name))
		if err != nil {
			return "", fmt.Errorf("look at recorded depot: %w", err)
		}
		fmt.Fprintf(&state, "%s %d %d ", name, stat.Size(), stat.ModTime().UnixNano())
	}
	return state.String(), nil
}

func (r recordedSource) feed(b *builder, _ string) (string, error) {
	state, err := r.state()
	if err != nil {
		return "", err
	}
	if err := b.clear(); err != nil {
		return "", err
	}
	if err := r.feedChanges(b); err != nil {
		return "", fmt.Errorf("read recorded changelists: %w", err)
	}
	if err := r.feedContents(b); err != nil {
		return "", fmt.Errorf("read recorded contents: %w", err)
	}
	return state, nil
}

func (r recordedSource) feedChanges(b *builder) error {
	file, err := os.Open(filepath.Join(r.dir, recordedChanges))
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
		revs = append(revs, revision{
			Path: raw(f.DepotFile), Rev: f.Rev, Action: f.Action, Type: f.Type, ModTime: f.ModTime, Content: f.Archive,
		})
	}
	if err := b.addUser(user{
		Name: c.User, Email: c.User + "@" + recordedDomain, FullName: c.User, Update: recordedUpdate, Access: recordedAccess,
	}); err != nil {
		return err
	}
	return b.addChange(&change{
		Number: c.Change, User: c.User, Client: c.Client, Time: c.Time, Desc: raw(c.Desc), Pending: c.Status == "pending",
	}, revs)
}

func (r recordedSource) feedContents(b *builder) error {
	file, err := os.Open(filepath.Join(r.dir, recordedContents))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	for {
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
