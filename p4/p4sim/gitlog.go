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
func parseLog(r *bufio.Reader, visit func(commit) error) error {
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
		if err := visit(c); err != nil {
			return err
		}
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
func (b *builder) addCommit(c commit) error {
	n := b.lastChange() + 1
	name := userName(c.email)
	if err := b.addUser(user{Name: name, Email: c.email, FullName: strings.ToValidUTF8(c.name, "?")}); err != nil {
		return err
	}
	revs, err := b.commitRevisions(c)
	if err != nil {
		return err
	}
	return b.addChange(&change{Number: n, User: name, Client: name + "-ws", Time: c.time, Desc: raw(c.message)}, revs)
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
func (b *builder) commitRevisions(c commit) ([]revision, error) {
	touched := map[string]int{}
	for _, d := range c.files {
		touched[d.path]++
		if d.from != "" {
			touched[d.from]++
		}
	}
	var revs []revision
	for _, d := range c.files {
		if d.from != "" && touched[d.from] > 1 {
			d.from = ""
		}
		made, err := b.fileRevisions(d)
		if err != nil {
			return nil, err
		}
		revs = append(revs, made...)
	}
	return revs, nil
}

// fileRevisions returns nothing for entries that are not in the depot, such as
// submodules.
func (b *builder) fileRevisions(d rawDiff) ([]revision, error) {
	path := depotPath(d.path)
	head, err := b.head(path)
	if err != nil {
		return nil, err
	}
	live := head != nil && !head.deleted()
	gone := d.status == 'D' || d.mode == modeSubmodule
	switch {
	case gone && !live:
		return nil, nil
	case gone:
		return []revision{{Path: path, Action: "delete", Type: head.Type}}, nil
	}
	r := revision{Path: path, Action: "add", Content: d.blob, Exec: d.mode == modeExec}
	if d.mode == modeSymlink {
		r.Type = "symlink"
	}
	if live {
		r.Action = "edit"
	}
	if d.from == "" {
		return []revision{r}, nil
	}
	return b.move(r, head.next(), depotPath(d.from))
}

// move returns a new revision, number rev of its file, and the deletion of its
// source.
func (b *builder) move(r revision, rev int, from raw) ([]revision, error) {
	old, err := b.head(from)
	if err != nil {
		return nil, err
	}
	if old == nil || old.deleted() {
		return []revision{r}, nil
	}
	gone := revision{Path: from, Action: "delete", Type: old.Type}
	if r.Action == "add" {
		r.Action, r.From, r.FromRev = "move/add", from, old.Rev
		gone.Action, gone.Into, gone.IntoRev = "move/delete", r.Path, rev
	}
	return []revision{r, gone}, nil
}

func depotPath(path string) raw { return raw("//depot/" + encodePath(path)) }
