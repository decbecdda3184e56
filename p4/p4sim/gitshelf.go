package main

import (
	"strconv"
	"strings"
)

// A shelf is what a ref of shelfRefs names: a commit whose changes are shelved in
// the pending change of that number.
type shelf struct {
	number int
	commit string
}

const shelfRefs = "refs/shelves/"

// shelves lists them by number. Refs that are no number are somebody else's.
func (g gitSource) shelves() ([]shelf, error) {
	list, err := g.output("for-each-ref", "--sort=version:refname", "--format=%(objectname) %(refname)", shelfRefs)
	if err != nil {
		return nil, err
	}
	var found []shelf
	for line := range strings.Lines(list) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(strings.TrimPrefix(ref, shelfRefs), 10, 32); err == nil && n > 0 {
			found = append(found, shelf{int(n), commit})
		}
	}
	return found, nil
}

// feedShelves adds the shelves above the submitted changes. One whose number has
// been taken by a commit since is gone.
func (g gitSource) feedShelves(b *builder) error {
	shelves, err := g.shelves()
	if err != nil {
		return err
	}
	for _, s := range shelves {
		if s.number <= b.lastChange() {
			continue
		}
		if err := g.readLog(s.commit+"^!", func(c commit) error { return b.addShelf(s.number, c) }); err != nil {
			return err
		}
	}
	return nil
}

// addShelf adds a commit as the shelf of a pending change. As elsewhere, a shelved
// file has the number of the revision it is based on.
func (b *builder) addShelf(number int, c commit) error {
	revs, err := b.commitRevisions(c)
	if err != nil {
		return err
	}
	for i := range revs {
		head, err := b.head(revs[i].Path)
		if err != nil {
			return err
		}
		revs[i].Time, revs[i].Rev = c.time, 1
		if head != nil {
			revs[i].Rev = head.Rev
		}
	}
	name := userName(c.email)
	if err := b.addUser(user{Name: name, Email: c.email, FullName: strings.ToValidUTF8(c.name, "?"), Update: c.time, Access: c.time}); err != nil {
		return err
	}
	return b.addChange(&change{
		Number: number, User: name, Client: name + "-ws", Time: c.time, Desc: raw(c.message), Pending: true, Shelved: revs,
	}, nil)
}

// clearShelves forgets the pending changes: they are above all submitted ones.
func (b *builder) clearShelves() error {
	for c := b.tx.Bucket(bucketChanges).Cursor(); ; {
		key, value := c.Last()
		if key == nil {
			return nil
		}
		last, err := decode[change](value)
		if err != nil || !last.Pending {
			return err
		}
		if err := c.Delete(); err != nil {
			return err
		}
	}
}
