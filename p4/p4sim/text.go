package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.etcd.io/bbolt"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// A textSource is a depot written by hand; the package comment has the format.
type textSource struct {
	path string
	loc  *time.Location
}

func (t textSource) state() (string, error) {
	text, err := os.ReadFile(t.path)
	if err != nil {
		return "", fmt.Errorf("read depot: %w", err)
	}
	return fmt.Sprintf("%x %s", sha256.Sum256(text), t.loc), nil
}

func (t textSource) contents(tx *bbolt.Tx) contents { return stored{tx} }

func (t textSource) feed(b *builder, _ string) (string, error) {
	state, err := t.state()
	if err != nil {
		return "", err
	}
	if err := b.clear(); err != nil {
		return "", err
	}
	archive, err := txtar.ParseFile(t.path)
	if err != nil {
		return "", fmt.Errorf("read depot: %w", err)
	}
	feed := textFeed{b: b, loc: t.loc}
	for _, section := range archive.Files {
		if err := feed.section(section); err != nil {
			return "", fmt.Errorf("read depot %s: section %q: %w", t.path, section.Name, err)
		}
	}
	return state, feed.flush()
}

// A textFeed collects the sections of one change.
type textFeed struct {
	b       *builder
	loc     *time.Location
	current *change
	revs    []revision
}

func (t *textFeed) section(section txtar.File) error {
	words := strings.Fields(section.Name)
	switch words[0] {
	case "change":
		return t.change(words[1:], section.Data)
	case "user":
		return t.user(words[1:], section.Data)
	}
	if t.current == nil {
		return errors.New("comes before any change")
	}
	if words[0] == "job" {
		return t.job(words[1:], section.Data)
	}
	return t.file(section)
}

// job adds one that the change fixes: "job BUG-7 user=vera status=closed", and what
// it is about below it.
func (t *textFeed) job(words []string, desc []byte) error {
	if len(words) == 0 {
		return errors.New("a job needs a name")
	}
	j := job{Name: words[0], User: t.current.User, Status: "closed", Time: t.current.Time, Desc: raw(desc)}
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

// change starts the next change: "change 12 user=bruno time=... pending".
func (t *textFeed) change(words []string, desc []byte) error {
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
		if err := t.changeOption(c, word); err != nil {
			return err
		}
	}
	if c.Client == "" {
		c.Client = c.User + "-ws"
	}
	t.current, t.revs = c, nil
	if t.b.knows(c.User) {
		return nil
	}
	return t.b.addUser(user{Name: c.User, Email: c.User + "@example.com", FullName: c.User, Update: c.Time, Access: c.Time})
}

func (t *textFeed) changeOption(c *change, word string) error {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "user":
		c.User = value
	case "client":
		c.Client = value
	case "time":
		when, err := time.ParseInLocation("2006/01/02:15:04:05", value, t.loc)
		c.Time = when.Unix()
		return err
	case "old":
		n, err := strconv.Atoi(value)
		c.OldNumber = n
		return err
	case "pending":
		c.Pending = true
	case "restricted":
		c.Restricted = true
	case "latin1":
		desc, err := charmap.ISO8859_1.NewEncoder().String(string(c.Desc))
		c.Desc = raw(desc)
		return err
	default:
		return fmt.Errorf("unknown option %q", word)
	}
	return nil
}

// user sets an account: "user vera vera@example.com Vera Cruz", subscriptions
// below it.
func (t *textFeed) user(words []string, data []byte) error {
	if len(words) < 2 {
		return errors.New("a user needs a name and an address")
	}
	return t.b.addUser(user{
		Name: words[0], Email: words[1], FullName: strings.Join(words[2:], " "),
		Update: 1714557600, Access: 1714557600, Reviews: strings.Fields(string(data)),
	})
}

// file adds a revision: "edit text crlf //depot/a b.c", or one that comes from
// another file: "move/add text //depot/new.c <- //depot/old.c".
func (t *textFeed) file(section txtar.File) error {
	head, path, ok := strings.Cut(section.Name, " //")
	if !ok {
		return errors.New("names no depot path")
	}
	words := strings.Fields(head)
	path, from, hasFrom := strings.Cut(path, " <- //")
	r := revision{Path: raw(encodePath("//" + path)), Action: words[0], Type: "text"}
	content, shelved, err := transform(&r, section.Data, words[1:])
	if err != nil {
		return err
	}
	if hasFrom {
		if err := t.derive(&r, raw(encodePath("//"+from))); err != nil {
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

// transform applies the words between action and path to a file's content.
func transform(r *revision, content []byte, words []string) (_ []byte, shelved bool, err error) {
	for _, word := range words {
		switch word {
		case "base64":
			content, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(content)))
		case "nonl":
			content = []byte(strings.TrimSuffix(string(content), "\n"))
		case "crlf":
			content = []byte(strings.ReplaceAll(string(content), "\n", "\r\n"))
		case "latin1":
			content, err = charmap.ISO8859_1.NewEncoder().Bytes(content)
		case "utf16bytes":
			content, err = withMark.NewEncoder().Bytes(content)
		case "shelved":
			shelved = true
		default:
			r.Type = word
		}
		if err != nil {
			return nil, false, err
		}
	}
	return content, shelved, nil
}

// withMark is UTF-16 with a byte order mark, low byte first.
var withMark encoding.Encoding = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)

// derive fills in where a file comes from, and adds the other half of a move.
func (t *textFeed) derive(r *revision, from raw) error {
	source, err := t.b.head(from)
	if err != nil {
		return err
	}
	if source == nil {
		return fmt.Errorf("there is no %s to come from", from)
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

// add puts a revision where it belongs: the depot, a shelf or a workspace.
// Those not submitted carry the number of the revision they are based on.
func (t *textFeed) add(r revision, shelved bool) error {
	if !t.current.Pending {
		t.revs = append(t.revs, r)
		return nil
	}
	head, err := t.b.head(r.Path)
	if err != nil {
		return err
	}
	r.Time = t.current.Time
	r.Rev = 1
	if head != nil {
		r.Rev = head.Rev
	}
	if shelved {
		t.current.Shelved = append(t.current.Shelved, r)
		return nil
	}
	t.current.Opened = append(t.current.Opened, r)
	return nil
}

func (t *textFeed) flush() error {
	if t.current == nil {
		return nil
	}
	return t.b.addChange(t.current, t.revs)
}

func (b *builder) knows(name string) bool { return b.tx.Bucket(bucketUsers).Get([]byte(name)) != nil }
