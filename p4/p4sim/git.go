package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
)

// A snapshot is the history of a state of a repository.
type snapshot struct {
	State   string
	Changes []*change
	Users   map[string]user
}

// readGit makes a history of the repository at path: its first-parent history, oldest first,
// is changes 1 to n. It can have tens of thousands of commits and every command is a process,
// so a snapshot of it is kept in dir until HEAD moves.
func readGit(g *git.Repository, path, dir string) (*history, error) {
	state, err := g.Output(context.Background(), "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(path))
	name := filepath.Join(dir, fmt.Sprintf("git-%s-%x", filepath.Base(path), sum[:6]))
	h := newHistory()
	var read snapshot
	if file, err := os.Open(name); err == nil {
		err = gob.NewDecoder(bufio.NewReaderSize(file, 1<<16)).Decode(&read)
		_ = file.Close()
		if err == nil && read.State == state {
			h.changes, h.users = read.Changes, read.Users
			for _, c := range h.changes {
				for _, r := range c.Files {
					h.files[r.Path] = append(h.files[r.Path], r)
				}
			}
			return h, nil
		}
	}
	log, err := g.Output(context.Background(), "log", "--first-parent", "--diff-merges=first-parent", "--root", "--reverse", "--raw", "-z",
		"-M", "-l400", "--no-abbrev", "--no-show-signature", "--encoding=UTF-8",
		"--format=%H%x00%ae%x00%an%x00%ct%x00%B%x00", "HEAD")
	if err != nil {
		return nil, err
	}
	for fields := strings.Split(log, "\x00"); len(fields) > 1; {
		if fields, err = h.addCommit(fields); err != nil {
			return nil, fmt.Errorf("read git log: %w", err)
		}
	}
	// The snapshot is replaced in one step: other processes may read it, or write the same.
	file, err := os.CreateTemp(dir, filepath.Base(name))
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	err = errors.Join(gob.NewEncoder(file).Encode(snapshot{state, h.changes, h.users}), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return h, nil
}

// A rawDiff is one line of "git log --raw".
type rawDiff struct {
	mode   string // of the new side, like what follows
	blob   string
	path   string
	from   string // the old path of a renamed file
	status byte   // A, M, D, T or R
}

const (
	modeSubmodule = "160000"
	modeSymlink   = "120000"
	modeExec      = "100755"
)

// addCommit adds an entry of the log as the next change, from its NUL-separated fields, and
// returns the fields after it: an entry has five fields, an empty one, and then the fields of
// each file. A line feed is between the message and the files.
func (h *history) addCommit(fields []string) (rest []string, err error) {
	if len(fields) < 6 {
		return nil, io.ErrUnexpectedEOF
	}
	name := userName(fields[1])
	h.users[name] = user{Name: name, Email: fields[1], FullName: strings.ToValidUTF8(fields[2], "?")}
	next := &change{Number: len(h.changes) + 1, User: name, Desc: fields[4]}
	if next.Time, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
		return nil, fmt.Errorf("commit %s: %w", fields[0], err)
	}
	var files []rawDiff
	touched := map[string]int{}
	rest = fields[6:]
	for len(rest) > 1 && strings.HasPrefix(strings.TrimPrefix(rest[0], "\n"), ":") {
		words := strings.Fields(strings.TrimPrefix(rest[0], "\n")[1:])
		if len(words) != 5 {
			return nil, fmt.Errorf("unexpected %q", rest[0])
		}
		d := rawDiff{mode: words[1], blob: words[3], path: rest[1], status: words[4][0]}
		rest = rest[2:]
		if (d.status == 'R' || d.status == 'C') && len(rest) > 0 {
			d.from, d.path, rest = d.path, rest[0], rest[1:]
			touched[d.from]++
		}
		touched[d.path]++
		files = append(files, d)
	}
	var revs []*revision
	for _, f := range files {
		if touched[f.from] > 1 { // the commit changes it in another way, too
			f.from = ""
		}
		revs = append(revs, h.fileRevisions(f)...)
	}
	h.addChange(next, revs)
	return rest, nil
}

// userName makes a user name from the local part of a mail address, without the
// characters that need quotes in an address. GitHub's noreply addresses have the
// number of the account before a plus sign.
func userName(email string) string {
	local, domain, _ := strings.Cut(email, "@")
	if _, name, ok := strings.Cut(local, "+"); ok && strings.HasSuffix(domain, "users.noreply.github.com") {
		local = name
	}
	name := strings.Trim(notInName.ReplaceAllString(local, "_"), "-.")
	if strings.Trim(name, "0123456789") == "" {
		return "user" + name
	}
	return name
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.+-]|\.\.+`)

// fileRevisions translates a file of a commit. It returns nothing for entries that are not
// in the depot, such as submodules. A rename becomes a pair of moves.
func (h *history) fileRevisions(f rawDiff) []*revision {
	path := "//depot/" + encodePath(f.path)
	head := h.head(path)
	live := head != nil && !head.deleted()
	gone := f.status == 'D' || f.mode == modeSubmodule
	switch {
	case gone && !live:
		return nil
	case gone:
		return []*revision{{Path: path, Action: "delete", Type: head.Type}}
	}
	r := &revision{Path: path, Action: "add", Content: f.blob, Exec: f.mode == modeExec}
	if f.mode == modeSymlink {
		r.Type = "symlink"
	}
	if live {
		r.Action = "edit"
	}
	from := "//depot/" + encodePath(f.from)
	old := h.head(from)
	if f.from == "" || old == nil || old.deleted() {
		return []*revision{r}
	}
	source := &revision{Path: from, Action: "delete", Type: old.Type}
	if r.Action == "add" {
		r.Action, r.From, r.FromRev = "move/add", from, old.Rev
		source.Action = "move/delete"
	}
	return []*revision{r, source}
}
