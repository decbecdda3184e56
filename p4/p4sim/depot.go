package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// A depot answers queries from an index, in one read transaction.
type depot struct {
	db       *bbolt.DB
	tx       *bbolt.Tx
	contents contents
	// mailDomain, if set, replaces the domain of mail addresses.
	mailDomain string
	caseFold
}

// contents reads the bytes that the Content of a revision names.
type contents interface {
	read(key string) ([]byte, error)
	close() error
}

// openDepot opens the index of the depot and adds what the index lacks.
func (s *session) openDepot() (*depot, error) {
	src, path, mailDomain, err := s.settings.source()
	if err != nil {
		return nil, err
	}
	dir, err := s.settings.stateDir()
	if err != nil {
		return nil, err
	}
	db, err := openIndex(indexPath(dir, path), src, func(int, int) {})
	if err != nil {
		return nil, fmt.Errorf("open depot %s: %w", path, err)
	}
	tx, err := db.Begin(false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open depot %s: %w", path, err), db.Close())
	}
	return &depot{db: db, tx: tx, contents: src.contents(tx), mailDomain: mailDomain, caseFold: s.settings["P4SIM_CASE"] == "insensitive"}, nil
}

func (d *depot) close() error {
	return errors.Join(d.tx.Rollback(), d.contents.close(), d.db.Close())
}

// change returns nil if there is no such change.
func (d *depot) change(n int) (*change, error) {
	if n < 1 || n > maxChange {
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

// eachChange visits the changes numbered low to high, newest first, until visit
// returns false.
func (d *depot) eachChange(low, high int, visit func(*change) (bool, error)) error {
	c := d.tx.Bucket(bucketChanges).Cursor()
	before := c.Prev
	if key, _ := c.Seek(changeKey(high + 1)); key == nil {
		before = c.Last
	}
	key, value := before()
	for ; key != nil && int(binary.BigEndian.Uint32(key)) >= low; key, value = c.Prev() {
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
	if value := d.tx.Bucket(bucketRevisions).Get(revisionKey(path, rev)); rev > 0 && value != nil {
		return decode[revision](value)
	}
	if d.caseFold != caseInsensitive {
		return nil, nil
	}
	var found *revision
	err := d.eachFile(string(path), func(revs []revision) (bool, error) {
		for i := range revs {
			if revs[i].Rev == rev {
				found = &revs[i]
			}
		}
		return found == nil, nil
	})
	return found, err
}

// revisions are the files of a submitted change.
func (d *depot) revisions(c *change) ([]revision, error) {
	var found []revision
	for _, f := range c.Files {
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

// eachFile visits the files that match a pattern, in the order of their paths,
// each with its revisions from the first on, until visit returns false.
func (d *depot) eachFile(pattern string, visit func([]revision) (bool, error)) error {
	prefix := []byte(strings.TrimSuffix(pattern, "..."))
	if d.caseFold == caseInsensitive {
		prefix = nil // the files are in the order of their bytes
	}
	c := d.tx.Bucket(bucketRevisions).Cursor()
	key, value := c.Seek(prefix)
	for key != nil && bytes.HasPrefix(key, prefix) {
		path := pathOf(key)
		if !d.matches(pattern, string(path)) {
			if prefix != nil {
				return nil // a longer name: an exact path comes first
			}
			key, value = c.Next()
			continue
		}
		var revs []revision
		for ; key != nil && bytes.Equal(pathOf(key), path); key, value = c.Next() {
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

// user returns nil if there is no such user.
func (d *depot) user(name string) (*user, error) {
	value := d.tx.Bucket(bucketUsers).Get([]byte(name))
	if value == nil {
		return nil, nil
	}
	u, err := decode[user](value)
	if err == nil && d.mailDomain != "" {
		u.Email = u.Name + "@" + d.mailDomain
	}
	return u, err
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

func (stored) close() error { return nil }
