package main

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// readTxtar reads a depot written by hand; the package comment has the format.
func readTxtar(name string) (*history, error) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		return nil, err
	}
	reader := txtarReader{history: newHistory()}
	for _, section := range archive.Files {
		if err := reader.section(section); err != nil {
			return nil, fmt.Errorf("section %q: %w", section.Name, err)
		}
	}
	reader.flush()
	return reader.history, nil
}

// A txtarReader collects the sections of one change.
type txtarReader struct {
	*history
	current *change // nil before the first
	revs    []*revision
}

func (t *txtarReader) section(section txtar.File) error {
	words := strings.Fields(section.Name)
	kind, words := words[0], words[1:]
	switch {
	case kind == "change":
		return t.startChange(words, section.Data)
	case kind == "user":
		return t.addAccount(words, section.Data)
	case t.current == nil:
		return errors.New("there is no change before it")
	case kind == "job":
		return t.addJob(words, section.Data)
	}
	return t.addFile(section)
}

// options reads words such as user=vera, of which the names are known.
func options(words []string, known ...string) (map[string]string, error) {
	given := make(map[string]string, len(words))
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown option %q", word)
		}
		given[name] = value
	}
	return given, nil
}

// addAccount adds "user NAME ADDRESS FULL NAME", with the subscriptions below it.
func (t *txtarReader) addAccount(words []string, data []byte) error {
	if len(words) < 2 {
		return errors.New("a user needs a name and an address")
	}
	t.addUser(user{words[0], words[1], strings.Join(words[2:], " "), strings.Fields(string(data))})
	return nil
}

// startChange starts the next change: "change 12 user=bruno pending".
func (t *txtarReader) startChange(words []string, desc []byte) error {
	t.flush()
	if len(words) == 0 {
		return errors.New("a change needs a number")
	}
	given, err := options(words[1:], "user", "client", "old", "pending")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	c := &change{Number: n, User: cmp.Or(given["user"], "bruno"), Time: 1714557600 + int64(n)*60, Desc: string(desc)}
	c.Client = cmp.Or(given["client"], c.User+"-ws")
	c.OldNumber, err = strconv.Atoi(cmp.Or(given["old"], "0"))
	_, c.Pending = given["pending"]
	if _, known := t.users[c.User]; !known {
		t.addUser(user{Name: c.User, Email: c.User + "@example.com", FullName: c.User})
	}
	t.current, t.revs = c, nil
	return err
}

// addJob adds "job BUG-7 user=vera status=closed", with its text below it.
func (t *txtarReader) addJob(words []string, desc []byte) error {
	if len(words) == 0 {
		return errors.New("a job needs a name")
	}
	given, err := options(words[1:], "user", "status")
	j := job{words[0], cmp.Or(given["user"], t.current.User), cmp.Or(given["status"], "closed"), string(desc)}
	t.current.Jobs = append(t.current.Jobs, j)
	return err
}

// addFile adds a revision: "edit text //depot/a b.c", or one with a source:
// "move/add text //depot/new.c <- //depot/old.c".
func (t *txtarReader) addFile(section txtar.File) error {
	head, path, ok := strings.Cut(section.Name, " //")
	if !ok {
		return errors.New("there is no depot path in it")
	}
	words := strings.Fields(head)
	path, from, hasFrom := strings.Cut(path, " <- //")
	r := &revision{Path: encodePath("//" + path), Action: words[0], Type: "text"}
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
		if err := t.setSource(r, encodePath("//"+from)); err != nil {
			return err
		}
	}
	if !r.deleted() {
		r.Content = strconv.Itoa(len(t.contents))
		t.contents[r.Content] = content
	}
	t.add(r, shelved)
	return nil
}

// setSource records the source of a revision, and adds the deletion of a move.
func (t *txtarReader) setSource(r *revision, from string) error {
	source := t.head(from)
	if source == nil {
		return fmt.Errorf("the source %s does not exist", from)
	}
	r.From, r.FromRev = from, source.Rev
	if r.Action == "move/add" {
		t.add(&revision{Path: from, Action: "move/delete", Type: source.Type, Into: r.Path, IntoRev: t.head(r.Path).next()}, false)
	}
	return nil
}

// add adds a revision to the depot, a shelf or a workspace. Those that are not
// submitted have the number of the revision they are based on.
func (t *txtarReader) add(r *revision, shelved bool) {
	if !t.current.Pending {
		t.revs = append(t.revs, r)
		return
	}
	r.Time, r.Rev = t.current.Time, 1
	if head := t.head(r.Path); head != nil {
		r.Rev = head.Rev
	}
	if shelved {
		t.current.Shelved = append(t.current.Shelved, r)
	} else {
		t.current.Opened = append(t.current.Opened, r)
	}
}

// flush adds the change that is complete.
func (t *txtarReader) flush() {
	if t.current != nil {
		t.addChange(t.current, t.revs)
	}
}
