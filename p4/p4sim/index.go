package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// The buckets of an index. Revisions are keyed by path, NUL and number, so that a
// file's revisions lie together and files come in the order of their paths.
var (
	bucketMeta      = []byte("meta")
	bucketChanges   = []byte("changes")
	bucketRevisions = []byte("revisions")
	bucketUsers     = []byte("users")
	bucketContents  = []byte("contents")
	keyState        = []byte("state")
	buckets         = [][]byte{bucketMeta, bucketChanges, bucketRevisions, bucketUsers, bucketContents}
)

func changeKey(n int) []byte { return appendKey(nil, n) }

func revisionKey(path raw, rev int) []byte { return appendKey(append([]byte(path), 0), rev) }

// pathOf is the path of a revision's key.
func pathOf(key []byte) []byte { return key[:len(key)-5] }

// appendKey makes keys that sort by number.
func appendKey(key []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(key, uint32(n)) //nolint:gosec // changes and revisions have 31 bits
}

// A source is what a depot is made from.
type source interface {
	// state names what the source holds now; an index of another state is stale.
	state() (string, error)
	// feed adds all of it to an empty index.
	feed(b *builder) error
	// contents reads the contents that the index refers to.
	contents(tx *bbolt.Tx) contents
}

// lockTimeout bounds the wait for another process that builds the index.
const lockTimeout = 15 * time.Minute

// indexPath names the index of a depot. The number is that of the format.
func indexPath(stateDir, depotPath string) string {
	sum := sha256.Sum256([]byte(depotPath))
	return filepath.Join(stateDir, fmt.Sprintf("index2-%s-%x.db", filepath.Base(depotPath), sum[:6]))
}

// openIndex opens the index of a source for reading, after bringing it up to
// date. Only one process builds; the others wait for it.
func openIndex(path string, src source, progress func(done, total int)) (*bbolt.DB, error) {
	state, err := src.state()
	if err != nil {
		return nil, err
	}
	if db := openCurrent(path, state); db != nil {
		return db, nil
	}
	if err := build(path, state, src, progress); err != nil {
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
	// View returns the function's error, which is nil.
	_ = db.View(func(tx *bbolt.Tx) error { state = stateOf(tx); return nil })
	return state
}

func stateOf(tx *bbolt.Tx) string {
	if meta := tx.Bucket(bucketMeta); meta != nil {
		return string(meta.Get(keyState))
	}
	return ""
}

// build replaces the index, unless another process has built it meanwhile.
func build(path, state string, src source, progress func(done, total int)) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, NoFreelistSync: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if stateOf(tx) == state {
			return nil
		}
		for _, name := range buckets {
			if err := tx.DeleteBucket(name); err != nil && !errors.Is(err, bbolterrors.ErrBucketNotFound) {
				return err
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := src.feed(&builder{tx, progress}); err != nil {
			return err
		}
		return tx.Bucket(bucketMeta).Put(keyState, []byte(state))
	})
	return errors.Join(err, db.Close())
}

// buildIndex is "p4sim index": it brings the index up to date and reports progress.
func (s *session) buildIndex() error {
	src, path, _, err := s.settings.source()
	if err != nil {
		return err
	}
	dir, err := s.settings.stateDir()
	if err != nil {
		return err
	}
	p := &progress{w: s.out.stderr, started: time.Now()}
	db, err := openIndex(indexPath(dir, path), src, p.show)
	if err != nil {
		return fmt.Errorf("index %s: %w", path, err)
	}
	fmt.Fprintf(s.out.stderr, "p4sim: indexed %s in %s\n", path, time.Since(p.started).Round(time.Millisecond))
	return db.Close()
}

// progress prints the progress of an index, at most once a second.
type progress struct {
	w       io.Writer
	started time.Time
	shown   time.Time
}

func (p *progress) show(done, total int) {
	if done < total && time.Since(p.shown) < time.Second {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.w, "p4sim: %d of %d changes\n", done, total)
}
