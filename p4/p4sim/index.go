package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// A source is what a depot is made from.
type source interface {
	// state names what the source holds now; an index of another state is stale.
	state() (string, error)
	// feed adds what the index lacks, given the state it has, and returns the
	// state it then has.
	feed(b *builder, indexed string) (string, error)
	// contents reads the contents that the index refers to.
	contents(tx *bbolt.Tx) contents
}

// lockTimeout bounds the wait for another process that is building the index.
const lockTimeout = 15 * time.Minute

// indexPath names the index of a depot. The number is that of the format.
func indexPath(stateDir, depotPath string) string {
	sum := sha256.Sum256([]byte(depotPath))
	return filepath.Join(stateDir, fmt.Sprintf("index1-%s-%x.db", filepath.Base(depotPath), sum[:6]))
}

// openIndex opens the index of a source for reading, bringing it up to date
// first. Only one process builds; the others wait for it.
func openIndex(path string, src source, progress func(done, total int)) (*bbolt.DB, error) {
	state, err := src.state()
	if err != nil {
		return nil, err
	}
	if db := openCurrent(path, state); db != nil {
		return db, nil
	}
	if err := update(path, src, progress); err != nil {
		return nil, fmt.Errorf("index %s: %w", path, err)
	}
	return bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
}

// openCurrent returns nil if the index is missing, broken or stale.
func openCurrent(path, state string) *bbolt.DB {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return nil
	}
	if indexedState(db) != state {
		_ = db.Close()
		return nil
	}
	return db
}

func indexedState(db *bbolt.DB) (state string) {
	// The view cannot fail: the function does not.
	_ = db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			state = string(meta.Get(keyState))
		}
		return nil
	})
	return state
}

func update(path string, src source, progress func(done, total int)) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, NoSync: true, NoFreelistSync: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	b := &builder{db: db, progress: progress}
	if err := b.begin(); err != nil {
		return err
	}
	state, err := src.feed(b, indexedState(db))
	if err == nil {
		err = b.save(state)
	}
	if err != nil {
		return errors.Join(err, b.tx.Rollback())
	}
	return errors.Join(b.tx.Rollback(), db.Sync())
}

// A builder writes an index. Errors leave what the last save wrote.
type builder struct {
	db       *bbolt.DB
	tx       *bbolt.Tx
	progress func(done, total int)
}

func (b *builder) begin() error {
	tx, err := b.db.Begin(true)
	if err != nil {
		return err
	}
	b.tx = tx
	for _, name := range [][]byte{bucketMeta, bucketChanges, bucketRevisions, bucketUsers, bucketContents} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return nil
}

// clear forgets everything: the source has another history now.
func (b *builder) clear() error {
	for _, name := range [][]byte{bucketMeta, bucketChanges, bucketRevisions, bucketUsers, bucketContents} {
		if err := b.tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := b.tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

// save makes what was added so far permanent, as the given state.
func (b *builder) save(state string) error {
	if err := b.tx.Bucket(bucketMeta).Put(keyState, []byte(state)); err != nil {
		return err
	}
	if err := b.tx.Commit(); err != nil {
		return err
	}
	return b.begin()
}

// lastChange is the highest number so far.
func (b *builder) lastChange() int {
	key, _ := b.tx.Bucket(bucketChanges).Cursor().Last()
	if key == nil {
		return 0
	}
	return int(binary.BigEndian.Uint32(key))
}

// head is the newest revision of a file so far, or nil.
func (b *builder) head(path raw) (*revision, error) {
	c := b.tx.Bucket(bucketRevisions).Cursor()
	back := c.Prev
	if key, _ := c.Seek(append([]byte(path), 1)); key == nil {
		back = c.Last
	}
	key, value := back()
	if key == nil || !bytes.Equal(key[:len(key)-5], []byte(path)) {
		return nil, nil
	}
	return decode[revision](value)
}

// addChange adds a submitted change. Revisions without a number become the
// next one of their file.
func (b *builder) addChange(c *change, revs []revision) error {
	slices.SortFunc(revs, func(x, y revision) int { return strings.Compare(string(x.Path), string(y.Path)) })
	for i := range revs {
		r := &revs[i]
		r.Change, r.Time = c.Number, c.Time
		if r.Rev == 0 {
			head, err := b.head(r.Path)
			if err != nil {
				return err
			}
			r.Rev = head.next()
		}
		if err := b.put(bucketRevisions, revisionKey(r.Path, r.Rev), r); err != nil {
			return err
		}
		c.Files = append(c.Files, ref{r.Path, r.Rev})
	}
	return b.put(bucketChanges, changeKey(c.Number), c)
}

func (b *builder) put(bucket, key []byte, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode index entry: %w", err)
	}
	return b.tx.Bucket(bucket).Put(key, value)
}

// addUser adds a user or notes that it was seen again.
func (b *builder) addUser(u user) error {
	if value := b.tx.Bucket(bucketUsers).Get([]byte(u.Name)); value != nil {
		known, err := decode[user](value)
		if err != nil {
			return err
		}
		u.Update = known.Update
		u.Access = max(u.Access, known.Access)
	}
	return b.put(bucketUsers, []byte(u.Name), u)
}

func (b *builder) addContent(key string, content []byte) error {
	return b.tx.Bucket(bucketContents).Put([]byte(key), content)
}
