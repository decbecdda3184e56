package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"

	"go.etcd.io/bbolt"
)

// The buckets of an index. Revisions are keyed by path, NUL and number, so
// that a file's revisions lie together and files come in the order of paths.
var (
	bucketMeta      = []byte("meta")
	bucketChanges   = []byte("changes")
	bucketRevisions = []byte("revisions")
	bucketUsers     = []byte("users")
	bucketContents  = []byte("contents")
	keyState        = []byte("state")
)

// A depot answers queries from an index: one read transaction, for one command.
type depot struct {
	db       *bbolt.DB
	tx       *bbolt.Tx
	contents contents
	// hidden are patterns of files the user may not see.
	hidden []string
	// reviewers are users, and subscriptions of users, from P4SIM_REVIEWERS.
	reviewers map[string]*user
	// mailDomain, if set, takes the place of what addresses end with.
	mailDomain string
}

// contents reads what a revision's Content names.
type contents interface {
	read(key string) ([]byte, error)
	close() error
}

func (d *depot) close() error {
	err := d.tx.Rollback()
	if d.contents != nil {
		if e := d.contents.close(); err == nil {
			err = e
		}
	}
	if e := d.db.Close(); err == nil {
		err = e
	}
	return err
}

func changeKey(n int) []byte { return appendNumber(nil, n) }

func revisionKey(path raw, rev int) []byte { return appendNumber(append([]byte(path), 0), rev) }

// appendNumber makes keys that sort by number.
func appendNumber(key []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(key, uint32(n)) //nolint:gosec // changes and revisions have 31 bits
}

// change returns nil if there is no such change.
func (d *depot) change(n int) (*change, error) {
	if n < 1 || n > 1<<31 {
		return nil, nil
	}
	value := d.tx.Bucket(bucketChanges).Get(changeKey(n))
	if value == nil {
		return nil, nil
	}
	return decode[change](value)
}

func decode[T any](value []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		return nil, fmt.Errorf("decode index entry: %w", err)
	}
	return v, nil
}

// lastChange is the highest number in use, pending ones included.
func (d *depot) lastChange() int {
	key, _ := d.tx.Bucket(bucketChanges).Cursor().Last()
	if key == nil {
		return 0
	}
	return int(binary.BigEndian.Uint32(key))
}

// eachChange visits the changes numbered low to high until visit returns
// false, newest first unless ascending.
func (d *depot) eachChange(low, high int, ascending bool, visit func(*change) (bool, error)) error {
	c := d.tx.Bucket(bucketChanges).Cursor()
	high = min(high, d.lastChange())
	key, value := c.Seek(changeKey(low))
	step := c.Next
	if !ascending {
		step = c.Prev
		if key, value = c.Seek(changeKey(high)); key == nil || !bytes.Equal(key, changeKey(high)) {
			key, value = c.Prev()
		}
	}
	for ; key != nil; key, value = step() {
		if n := int(binary.BigEndian.Uint32(key)); n < low || n > high {
			return nil
		}
		one, err := decode[change](value)
		if err != nil {
			return err
		}
		if more, err := visit(one); err != nil || !more {
			return err
		}
	}
	return nil
}

// revision returns nil if there is no such revision.
func (d *depot) revision(path raw, rev int) (*revision, error) {
	if rev < 1 {
		return nil, nil
	}
	value := d.tx.Bucket(bucketRevisions).Get(revisionKey(path, rev))
	if value == nil {
		return nil, nil
	}
	return decode[revision](value)
}

// revisions are the files of a submitted change that the user may see.
func (d *depot) revisions(c *change) ([]revision, error) {
	var found []revision
	for _, f := range c.Files {
		if d.hides(string(f.Path)) {
			continue
		}
		r, err := d.revision(f.Path, f.Rev)
		if err != nil {
			return nil, err
		}
		if r != nil {
			found = append(found, *r)
		}
	}
	return found, nil
}

func (d *depot) hides(path string) bool {
	for _, pattern := range d.hidden {
		if matches(pattern, path) {
			return true
		}
	}
	return false
}

// eachFile visits the files that match a pattern, in the order of their paths,
// each with its revisions from the first on, until visit returns false.
func (d *depot) eachFile(pattern string, visit func([]revision) (bool, error)) error {
	prefix := []byte(literalPrefix(pattern))
	c := d.tx.Bucket(bucketRevisions).Cursor()
	key, value := c.Seek(prefix)
	for key != nil && bytes.HasPrefix(key, prefix) {
		path := key[:len(key)-5]
		if !matches(pattern, string(path)) || d.hides(string(path)) {
			key, value = c.Seek(append(bytes.Clone(path), 1))
			continue
		}
		var revs []revision
		for ; key != nil && bytes.Equal(key[:len(key)-5], path); key, value = c.Next() {
			r, err := decode[revision](value)
			if err != nil {
				return err
			}
			revs = append(revs, *r)
		}
		if more, err := visit(revs); err != nil || !more {
			return err
		}
	}
	return nil
}

// users are all users by name.
func (d *depot) users() (map[string]*user, error) {
	found := maps.Clone(d.reviewers)
	err := d.tx.Bucket(bucketUsers).ForEach(func(key, _ []byte) error {
		u, err := d.user(string(key))
		found[string(key)] = u
		return err
	})
	return found, err
}

// user returns nil if there is no such user.
func (d *depot) user(name string) (*user, error) {
	reviewer := d.reviewers[name]
	value := d.tx.Bucket(bucketUsers).Get([]byte(name))
	if value == nil {
		return reviewer, nil
	}
	u, err := decode[user](value)
	if err != nil {
		return nil, err
	}
	if d.mailDomain != "" && d.mailDomain != keepMailDomain {
		u.Email = u.Name + "@" + d.mailDomain
	}
	if reviewer != nil {
		u.Reviews = reviewer.Reviews
	}
	return u, nil
}

// stored reads contents that the index holds itself.
type stored struct{ tx *bbolt.Tx }

func (s stored) read(key string) ([]byte, error) {
	value := s.tx.Bucket(bucketContents).Get([]byte(key))
	if value == nil {
		return nil, fmt.Errorf("content %s is not in the index", key)
	}
	return bytes.Clone(value), nil
}

func (s stored) close() error { return nil }
