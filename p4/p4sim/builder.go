package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// A builder writes an index. After an error the index is as the last save left it.
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
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return nil
}

// clear removes everything: the source has another history.
func (b *builder) clear() error {
	for _, name := range buckets {
		if err := b.tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := b.tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

// save commits what was added so far, as the given state.
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
	if key == nil || !bytes.Equal(pathOf(key), []byte(path)) {
		return nil, nil
	}
	return decode[revision](value)
}

// addChange adds a change. Revisions without a number become the next one of
// their file.
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

func (b *builder) addUser(u user) error { return b.put(bucketUsers, []byte(u.Name), u) }

func (b *builder) addContent(key string, content []byte) error {
	return b.tx.Bucket(bucketContents).Put([]byte(key), content)
}
