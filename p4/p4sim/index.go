package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// A depot can have tens of thousands of changes, and every command is a process: an index
// makes what a command reads independent of the size of the depot.

// A history is all that a source holds, to be written to an index.
type history struct {
	changes  []*change
	files    map[string][]*revision // by path, from the first on
	users    map[string]user
	contents map[string][]byte // by the Content of the revisions; git has its own
}

func newHistory() *history {
	return &history{files: map[string][]*revision{}, users: map[string]user{}, contents: map[string][]byte{}}
}

// addChange adds a change that made the given revisions. Those without a number become
// the next one of their file.
func (h *history) addChange(c *change, revs []*revision) {
	slices.SortFunc(revs, func(x, y *revision) int { return strings.Compare(x.Path, y.Path) })
	for _, r := range revs {
		r.Change, r.Time = c.Number, c.Time
		r.Rev = cmp.Or(r.Rev, h.head(r.Path).next())
		h.files[r.Path] = append(h.files[r.Path], r)
	}
	c.Files = revs
	h.changes = append(h.changes, c)
}

// addUser adds a user, or replaces the user of the same name.
func (h *history) addUser(u user) { h.users[u.Name] = u }

// head is the newest revision of a file, nil if there is none.
func (h *history) head(path string) *revision {
	revs := h.files[path]
	if len(revs) == 0 {
		return nil
	}
	return revs[len(revs)-1]
}

// The buckets of an index.
var (
	bucketMeta     = []byte("meta")
	bucketChanges  = []byte("changes") // by changeKey
	bucketFiles    = []byte("files")   // the revisions of each path
	bucketUsers    = []byte("users")
	bucketContents = []byte("contents")
	buckets        = [][]byte{bucketMeta, bucketChanges, bucketFiles, bucketUsers, bucketContents}
	keyState       = []byte("state")
)

// changeKey makes keys that sort by number.
func changeKey(n int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(n)) //nolint:gosec // changes have 31 bits
}

// indexName names the index of a depot. The number is the version of the index format.
func indexName(stateDir, depotPath string) string {
	sum := sha256.Sum256([]byte(depotPath))
	return filepath.Join(stateDir, fmt.Sprintf("index4-%s-%x.db", filepath.Base(depotPath), sum[:6]))
}

// openIndex opens the index of a source for reading. If it is missing, broken or stale, it
// is built.
func openIndex(name string, src source) (*bbolt.DB, error) {
	state, err := src.state()
	if err != nil {
		return nil, err
	}
	if db, err := bbolt.Open(name, 0o600, readOnly); err == nil {
		if stateOf(db) == state {
			return db, nil
		}
		_ = db.Close()
	}
	h, err := src.history()
	if err == nil {
		err = h.write(name, state)
	}
	if err != nil {
		return nil, err
	}
	return bbolt.Open(name, 0o600, readOnly)
}

var readOnly = &bbolt.Options{ReadOnly: true}

func stateOf(db *bbolt.DB) (state string) {
	_ = db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			state = string(meta.Get(keyState))
		}
		return nil
	})
	return state
}

// write replaces the index in one step: other processes may read it, or write the same.
func (h *history) write(name, state string) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return err
	}
	db, err := bbolt.Open(file.Name(), 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err == nil {
		err = errors.Join(db.Update(func(tx *bbolt.Tx) error { return h.put(tx, state) }), db.Close())
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

func (h *history) put(tx *bbolt.Tx, state string) (err error) {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	add := func(bucket, key []byte, value any) {
		var encoded bytes.Buffer
		if err == nil {
			err = gob.NewEncoder(&encoded).Encode(value)
		}
		if err == nil {
			err = tx.Bucket(bucket).Put(key, encoded.Bytes())
		}
	}
	for _, c := range h.changes {
		add(bucketChanges, changeKey(c.Number), c)
	}
	for path, revs := range h.files {
		add(bucketFiles, []byte(path), revs)
	}
	for name, u := range h.users {
		add(bucketUsers, []byte(name), u)
	}
	for key, content := range h.contents {
		err = cmp.Or(err, tx.Bucket(bucketContents).Put([]byte(key), content))
	}
	if err != nil {
		return err
	}
	return tx.Bucket(bucketMeta).Put(keyState, []byte(state))
}

// find returns nil if the bucket does not have the key.
func find[T any](tx *bbolt.Tx, bucket, key []byte) *T {
	value := tx.Bucket(bucket).Get(key)
	if value == nil {
		return nil
	}
	return decode[T](value)
}

// backward yields the values of a bucket from the last key on.
func backward[T any](tx *bbolt.Tx, bucket []byte) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		c := tx.Bucket(bucket).Cursor()
		for key, value := c.Last(); key != nil && yield(decode[T](value)); {
			key, value = c.Prev()
		}
	}
}

// decode panics if the index, which this program wrote in one step, is damaged.
func decode[T any](value []byte) *T {
	v := new(T)
	if err := gob.NewDecoder(bytes.NewReader(value)).Decode(v); err != nil {
		panic(fmt.Sprintf("decode an entry of the index: %v: delete it", err))
	}
	return v
}
