package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A commit is one entry of git's log.
type commit struct {
	id, email, name string
	time            int64
	message         string
	files           []rawDiff
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

// parseLog reads NUL-separated log entries: five fields, an empty one, and
// then the files until the next entry begins.
func parseLog(r *bufio.Reader, visit func(commit)) error {
	token, err := nextToken(r)
	for err == nil {
		var c commit
		if c, err = parseHeader(r, token); err != nil {
			break
		}
		for token, err = nextToken(r); err == nil && strings.HasPrefix(token, ":"); token, err = nextToken(r) {
			var d rawDiff
			if d, err = parseRaw(r, token); err != nil {
				return err
			}
			c.files = append(c.files, d)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		visit(c)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// nextToken reads up to the next NUL, without the line feed that git puts between
// a message and its files.
func nextToken(r *bufio.Reader) (string, error) {
	token, err := r.ReadString(0)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(token[:len(token)-1], "\n"), nil
}

func parseHeader(r *bufio.Reader, id string) (commit, error) {
	var rest [5]string
	for i := range rest {
		field, err := r.ReadString(0)
		if err != nil {
			return commit{}, fmt.Errorf("read commit %s: %w", id, io.ErrUnexpectedEOF)
		}
		rest[i] = field[:len(field)-1]
	}
	time, err := strconv.ParseInt(rest[2], 10, 64)
	if err != nil {
		return commit{}, fmt.Errorf("read commit %s: %w", id, err)
	}
	return commit{id: id, email: rest[0], name: rest[1], time: time, message: rest[3]}, nil
}

func parseRaw(r *bufio.Reader, token string) (rawDiff, error) {
	words := strings.Fields(token[1:])
	if len(words) != 5 {
		return rawDiff{}, fmt.Errorf("read git log: unexpected %q", token)
	}
	d := rawDiff{mode: words[1], blob: words[3], status: words[4][0]}
	path, err := nextToken(r)
	if err != nil {
		return d, fmt.Errorf("read git log: %w", io.ErrUnexpectedEOF)
	}
	if d.status == 'R' || d.status == 'C' {
		d.from = path
		if path, err = nextToken(r); err != nil {
			return d, fmt.Errorf("read git log: %w", io.ErrUnexpectedEOF)
		}
	}
	d.path = path
	return d, nil
}

// addCommit adds a commit as the next change.
func (h *history) addCommit(c commit) {
	name := userName(c.email)
	h.addUser(user{Name: name, Email: c.email, FullName: strings.ToValidUTF8(c.name, "?")})
	next := &change{Number: len(h.changes) + 1, User: name, Client: name + "-ws", Time: c.time, Desc: c.message}
	h.addChange(next, h.commitRevisions(c))
}

// userName makes a user name from the local part of a mail address, without the
// characters that need quotes in an address. GitHub's noreply addresses have the
// number of the account before a plus sign.
func userName(email string) string {
	local, domain, _ := strings.Cut(email, "@")
	if strings.HasSuffix(domain, "users.noreply.github.com") {
		if _, name, ok := strings.Cut(local, "+"); ok {
			local = name
		}
	}
	name := strings.Trim(notInName.ReplaceAllString(local, "_"), "-.")
	if strings.Trim(name, "0123456789") == "" {
		return "user" + name
	}
	return name
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.+-]|\.\.+`)

// commitRevisions translates a commit's files. A rename becomes a pair of moves,
// unless the commit changes one of the two paths in another way, too.
func (h *history) commitRevisions(c commit) []*revision {
	touched := map[string]int{}
	for _, f := range c.files {
		touched[f.path]++
		if f.from != "" {
			touched[f.from]++
		}
	}
	var revs []*revision
	for _, f := range c.files {
		if f.from != "" && touched[f.from] > 1 {
			f.from = ""
		}
		revs = append(revs, h.fileRevisions(f)...)
	}
	return revs
}

// fileRevisions returns nothing for entries that are not in the depot, such as
// submodules.
func (h *history) fileRevisions(f rawDiff) []*revision {
	path := depotPath(f.path)
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
	if f.from == "" {
		return []*revision{r}
	}
	return h.move(r, head.next(), depotPath(f.from))
}

// move returns a new revision, number rev of its file, and the deletion of its
// source.
func (h *history) move(r *revision, rev int, from string) []*revision {
	old := h.head(from)
	if old == nil || old.deleted() {
		return []*revision{r}
	}
	gone := &revision{Path: from, Action: "delete", Type: old.Type}
	if r.Action == "add" {
		r.Action, r.From, r.FromRev = "move/add", from, old.Rev
		gone.Action, gone.Into, gone.IntoRev = "move/delete", r.Path, rev
	}
	return []*revision{r, gone}
}

func depotPath(path string) string { return "//depot/" + encodePath(path) }
