package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// A depot answers queries from the index of a source, in one read transaction.
type depot struct {
	git *gitSource // nil for another source
	db  *bbolt.DB
	tx  *bbolt.Tx
	// mailDomain, if set, replaces the domain of mail addresses.
	mailDomain string
	caseFold
}

// A source is what a depot is made from.
type source interface {
	// state names what the source holds now; an index of another state is stale.
	state() (string, error)
	// history reads all of it.
	history() (*history, error)
}

// The values of P4SIM_MAIL_DOMAIN. The domains of git authors are replaced by
// default: the authors are real people, and a test must not write to them.
const (
	defaultMailDomain = "example.test"
	keepMailDomain    = "keep"
)

// openDepot opens the depot that P4SIM_DEPOT names, after bringing its index up to date.
func (s settings) openDepot() (*depot, error) {
	if s["P4SIM_DEPOT"] == "" {
		return nil, errors.New("no depot: set P4SIM_DEPOT to a git repository, a recorded depot or a .txtar file")
	}
	path, err := filepath.Abs(s["P4SIM_DEPOT"])
	if err != nil {
		return nil, fmt.Errorf("find the depot: %w", err)
	}
	dir, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	d := &depot{mailDomain: s["P4SIM_MAIL_DOMAIN"], caseFold: s["P4SIM_CASE"] == "insensitive"}
	recorded, isRecorded := findRecorded(path)
	var src source = recorded
	switch {
	case strings.HasSuffix(path, ".txtar"):
		src = txtarSource{path}
	case !isRecorded:
		d.git, d.mailDomain = &gitSource{dir: path}, cmp.Or(d.mailDomain, defaultMailDomain)
		src = d.git
	}
	if d.mailDomain == keepMailDomain {
		d.mailDomain = ""
	}
	if d.db, err = openIndex(indexName(dir, path), src); err != nil {
		return nil, fmt.Errorf("open depot %s: %w", path, err)
	}
	if d.tx, err = d.db.Begin(false); err != nil {
		return nil, errors.Join(fmt.Errorf("open depot %s: %w", path, err), d.db.Close())
	}
	return d, nil
}

func (d *depot) close() error {
	return errors.Join(d.tx.Rollback(), d.git.close(), d.db.Close())
}

// content reads the bytes that the Content of a revision names.
func (d *depot) content(key string) ([]byte, error) {
	if d.git != nil {
		return d.git.content(key)
	}
	content := d.tx.Bucket(bucketContents).Get([]byte(key))
	if content == nil {
		return nil, errors.New("the depot has no content " + key)
	}
	return content, nil
}

// change returns nil if there is no such change.
func (d *depot) change(n int) *change {
	if n < 1 || n > maxChange {
		return nil
	}
	return find[change](d.tx, bucketChanges, changeKey(n))
}

// changes yields all changes, newest first.
func (d *depot) changes() iter.Seq[*change] { return backward[change](d.tx, bucketChanges) }

// revisions returns the revisions of a file, from the first on, or nil if there is no
// such file.
func (d *depot) revisions(path string) []*revision {
	if revs := find[[]*revision](d.tx, bucketFiles, []byte(path)); revs != nil {
		return *revs
	}
	return nil
}

// before is the revision before another one of its file, nil if there is none.
func (d *depot) before(r *revision) *revision {
	revs := d.revisions(r.Path)
	if i := slices.IndexFunc(revs, func(one *revision) bool { return one.Rev == r.Rev-1 }); i >= 0 {
		return revs[i]
	}
	return nil
}

// matching returns the paths of the files that match a pattern, in order.
func (d *depot) matching(pattern string) (paths []string) {
	prefix := []byte(strings.TrimRight(pattern, ".*"))
	if d.caseFold == caseInsensitive {
		prefix = nil // the files are in the order of their bytes
	}
	c := d.tx.Bucket(bucketFiles).Cursor()
	for key, _ := c.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, _ = c.Next() {
		if path := string(key); d.matches(pattern, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// user returns a user as p4 users prints it, nil if there is none of the name.
func (d *depot) user(name string) *user {
	u := find[user](d.tx, bucketUsers, []byte(name))
	if u != nil && d.mailDomain != "" {
		u.Email = u.Name + "@" + d.mailDomain
	}
	return u
}
