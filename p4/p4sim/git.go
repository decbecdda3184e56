package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
)

// A gitSource makes a depot of a git repository: the first-parent history of
// HEAD, oldest first, is changes 1 to n.
type gitSource struct{ *git.Repository }

// load reads the history of the repository at path. A repository can have tens of thousands of commits and every
// command is a process, so load keeps what it has read in dir until HEAD moves.
func (g *gitSource) load(path, dir string) (*history, error) {
	state, err := g.Output(context.Background(), "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(path))
	name := filepath.Join(dir, fmt.Sprintf("git-%s-%x", filepath.Base(path), sum[:6]))
	if h, ok := readSnapshot(name, state); ok {
		return h, nil
	}
	h, err := g.history()
	if err != nil {
		return nil, err
	}
	return h, h.writeSnapshot(name, state)
}

// A snapshot is the history of a state of a repository.
type snapshot struct {
	State   string
	Changes []*change
	Users   map[string]user
}

// readSnapshot returns false if there is none of the state.
func readSnapshot(name, state string) (*history, bool) {
	file, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer func() { _ = file.Close() }()
	var read snapshot
	if err := gob.NewDecoder(bufio.NewReaderSize(file, 1<<16)).Decode(&read); err != nil || read.State != state {
		return nil, false
	}
	h := newHistory()
	h.changes, h.users = read.Changes, read.Users
	for _, c := range h.changes {
		for _, r := range c.Files {
			h.files[r.Path] = append(h.files[r.Path], r)
		}
	}
	return h, true
}

// writeSnapshot replaces the snapshot in one step: other processes may read it, or write the same.
func (h *history) writeSnapshot(name, state string) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	err = errors.Join(gob.NewEncoder(file).Encode(snapshot{state, h.changes, h.users}), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

func (g *gitSource) history() (*history, error) {
	log, err := g.Output(context.Background(), "log", "--first-parent", "--diff-merges=first-parent", "--root", "--reverse", "--raw", "-z",
		"-M", "-l400", "--no-abbrev", "--no-show-signature", "--encoding=UTF-8",
		"--format=%H%x00%ae%x00%an%x00%ct%x00%B%x00", "HEAD")
	if err != nil {
		return nil, err
	}
	h := newHistory()
	for fields := strings.Split(log, "\x00"); len(fields) > 1; {
		var c commit
		if c, fields, err = parseCommit(fields); err != nil {
			return nil, fmt.Errorf("read git log: %w", err)
		}
		h.addCommit(c)
	}
	return h, nil
}
