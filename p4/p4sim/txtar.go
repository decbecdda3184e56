package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"go.etcd.io/bbolt"
)

// A txtarSource is a depot written by hand; the package comment has the format.
type txtarSource struct{ path string }

func (t txtarSource) state() (string, error) {
	text, err := os.ReadFile(t.path)
	if err != nil {
		return "", fmt.Errorf("read depot: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

func (t txtarSource) contents(tx *bbolt.Tx) contents { return stored{tx} }

func (t txtarSource) feed(b *builder) error {
	archive, err := txtar.ParseFile(t.path)
	if err != nil {
		return fmt.Errorf("read depot: %w", err)
	}
	feed := txtarFeed{b: b}
	for _, section := range archive.Files {
		if err := feed.section(section); err != nil {
			return fmt.Errorf("read depot %s: section %q: %w", t.path, section.Name, err)
		}
	}
	return feed.flush()
}

// A txtarFeed collects the sections of one change.
type txtarFeed struct {
	b       *builder
	current *change // nil before the first
	revs    []revision
}

func (t *txtarFeed) section(section txtar.File) error {
	words := strings.Fields(section.Name)
	kind, words := words[0], words[1:]
	switch {
	case kind == "change":
		return t.change(words, section.Data)
	case kind == "user":
		return t.user(words, section.Data)
	case t.current == nil:
		return errors.New("there is no change before it")
	case kind == "job":
		return t.job(words, section.Data)
	}
	return t.file(section)
}

// user adds "user NAME ADDRESS FULL NAME", with the subscriptions below it.
func (t *txtarFeed) user(words []string, data []byte) error {
	if len(words) < 2 {
		return errors.New("a user needs a name and an address")
	}
	return t.b.addUser(user{
		Name: words[0], Email: words[1], FullName: strings.Join(words[2:], " "), Reviews: strings.Fields(string(data)),
	})
}

// change starts the next change: "change 12 user=bruno pending".
func (t *txtarFeed) change(words []string, desc []byte) error {
	if err := t.flush(); err != nil {
		return err
	}
	if len(words) == 0 {
		return errors.New("a change needs a number")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	c := &change{Number: n, User: "bruno", Time: 1714557600 + int64(n)*60, Desc: raw(desc)}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "user":
			c.User = value
		case "client":
			c.Client = value
		case "old":
			if c.OldNumber, err = strconv.Atoi(value); err != nil {
				return err
			}
		case "pending":
			c.Pending = true
		default:
			return fmt.Errorf("unknown option %q", word)
		}
	}
	if c.Client == "" {
		c.Client = c.User + "-ws"
	}
	t.current, t.revs = c, nil
	if t.b.tx.Bucket(bucketUsers).Get([]byte(c.User)) != nil {
		return nil
	}
	return t.b.addUser(user{Name: c.User, Email: c.User + "@example.com", FullName: c.User})
}

// job adds "job BUG-7 user=vera status=closed", with its text below it.
func (t *txtarFeed) job(words []string, desc []byte) error {
	if len(words) == 0 {
		return errors.New("a job needs a name")
	}
	j := job{Name: words[0], User: t.current.User, Status: "closed", Desc: raw(desc)}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "user":
			j.User = value
		case "status":
			j.Status = value
		default:
			return fmt.Errorf("unknown option %q", word)
		}
	}
	t.current.Jobs = append(t.current.Jobs, j)
	return nil
}

// file adds a revision: "edit text //depot/a b.c", or one with a source:
// "move/add text //depot/new.c <- //depot/old.c".
func (t *txtarFeed) file(section txtar.File) error {
	head, path, ok := strings.Cut(section.Name, " //")
	if !ok {
		return errors.New("there is no depot path in it")
	}
	words := strings.Fields(head)
	path, from, hasFrom := strings.Cut(path, " <- //")
	r := revision{Path: raw(encodePath("//" + path)), Action: words[0], Type: "text"}
	content, shelved := section.Data, false
	for _, word := range words[1:] {
		switch word {
		case "base64":
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
			if err != nil {
				return err
			}
			content = decoded
		case "shelved":
			shelved = true
		default:
			r.Type = word
		}
	}
	if hasFrom {
		if err := t.setSource(&r, raw(encodePath("//"+from))); err != nil {
			return err
		}
	}
	if !r.deleted() {
		r.Content = fmt.Sprintf("%x", sha256.Sum256(content))
		if err := t.b.addContent(r.Content, content); err != nil {
			return err
		}
	}
	return t.add(r, shelved)
}

// setSource records the source of a revision, and adds the deletion of a move.
func (t *txtarFeed) setSource(r *revision, from raw) error {
	source, err := t.b.head(from)
	if err != nil {
		return err
	}
	if source == nil {
		return fmt.Errorf("the source %s does not exist", from)
	}
	r.From, r.FromRev = from, source.Rev
	if r.Action != "move/add" {
		return nil
	}
	head, err := t.b.head(r.Path)
	if err != nil {
		return err
	}
	return t.add(revision{Path: from, Action: "move/delete", Type: source.Type, Into: r.Path, IntoRev: head.next()}, false)
}

// add adds a revision to the depot, a shelf or a workspace. Those that are not
// submitted have the number of the revision they are based on.
func (t *txtarFeed) add(r revision, shelved bool) error {
	if !t.current.Pending {
		t.revs = append(t.revs, r)
		return nil
	}
	head, err := t.b.head(r.Path)
	if err != nil {
		return err
	}
	r.Time, r.Rev = t.current.Time, 1
	if head != nil {
		r.Rev = head.Rev
	}
	if shelved {
		t.current.Shelved = append(t.current.Shelved, r)
	} else {
		t.current.Opened = append(t.current.Opened, r)
	}
	return nil
}

func (t *txtarFeed) flush() error {
	if t.current == nil {
		return nil
	}
	return t.b.addChange(t.current, t.revs)
}
