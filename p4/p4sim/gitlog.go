package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A commit is one entry of git's log.
type commit struct {
	email, name string
	time        int64
	message     string
	files       []rawDiff
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

// parseCommit reads one entry of the log from its NUL-separated fields, and returns the fields
// after it: five fields, an empty one, and then the fields of each file. A line feed is between
// the message and the files.
func parseCommit(fields []string) (c commit, rest []string, err error) {
	if len(fields) < 6 {
		return c, nil, io.ErrUnexpectedEOF
	}
	c = commit{email: fields[1], name: fields[2], message: fields[4]}
	if c.time, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
		return c, nil, fmt.Errorf("commit %s: %w", fields[0], err)
	}
	rest = fields[6:]
	for len(rest) > 1 && strings.HasPrefix(strings.TrimPrefix(rest[0], "\n"), ":") {
		words := strings.Fields(strings.TrimPrefix(rest[0], "\n")[1:])
		if len(words) != 5 {
			return c, nil, fmt.Errorf("unexpected %q", rest[0])
		}
		d := rawDiff{mode: words[1], blob: words[3], path: rest[1], status: words[4][0]}
		rest = rest[2:]
		if (d.status == 'R' || d.status == 'C') && len(rest) > 0 {
			d.from, d.path, rest = d.path, rest[0], rest[1:]
		}
		c.files = append(c.files, d)
	}
	return c, rest, nil
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
