package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// A builder writes an index, in one transaction.
type builder struct {
	tx       *bbolt.Tx
	progress func(done, total int)
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
