package main

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
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
	t := txtarReader{history: newHistory()}
	for _, section := range archive.Files {
		if err := t.section(section.Name, section.Data); err != nil {
			return nil, fmt.Errorf("section %q: %w", section.Name, err)
		}
	}
	t.flush()
	return t.history, nil
}

// A txtarReader collects the sections of one change.
type txtarReader struct {
	*history
	current *change // nil before the first
	revs    []*revision
}

// section reads one section:
//
//	user NAME ADDRESS FULL NAME, with the subscriptions below it
//	change 12 user=bruno pending
//	job BUG-7, with its text below it
//	edit text //depot/a b.c
//	move/add text //depot/new.c <- //depot/old.c
func (t *txtarReader) section(head string, data []byte) error {
	words := strings.Fields(head)
	kind, words := words[0], words[1:]
	if len(words) == 0 {
		return errors.New("it has one word only")
	}
	switch {
	case kind == "user" && len(words) < 2:
		return errors.New("a user needs a name and an address")
	case kind == "user":
		t.users[words[0]] = user{words[0], words[1], strings.Join(words[2:], " "), strings.Fields(string(data))}
		return nil
	case kind == "change":
		return t.startChange(words, data)
	case t.current == nil:
		return errors.New("there is no change before it")
	case kind == "job":
		t.current.Jobs = append(t.current.Jobs, job{words[0], string(data)})
		return nil
	}
	return t.addFile(head, data)
}

func (t *txtarReader) startChange(words []string, desc []byte) error {
	t.flush()
	n, err := strconv.Atoi(words[0])
	c := &change{Number: n, User: "bruno", Time: 1714557600 + int64(n)*60, Desc: string(desc)}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); {
		case name == "user":
			c.User = value
		case name == "old" && err == nil:
			c.OldNumber, err = strconv.Atoi(value)
		case name == "pending":
			c.Pending = true
		default:
			err = cmp.Or(err, fmt.Errorf("unknown option %q", word))
		}
	}
	if _, known := t.users[c.User]; !known {
		t.users[c.User] = user{Name: c.User, Email: c.User + "@example.com", FullName: c.User}
	}
	t.current, t.revs = c, nil
	return err
}

func (t *txtarReader) addFile(section string, content []byte) error {
	head, path, ok := strings.Cut(section, " //")
	if !ok {
		return errors.New("there is no depot path in it")
	}
	words := strings.Fields(head)
	path, from, hasFrom := strings.Cut(path, " <- //")
	r := &revision{Path: encodePath("//" + path), Action: words[0], Type: "text"}
	shelved := false
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
		r.From = encodePath("//" + from)
		source := t.head(r.From)
		if source == nil {
			return fmt.Errorf("the source %s does not exist", r.From)
		}
		if r.FromRev = source.Rev; r.Action == "move/add" { // with the deletion of the source
			t.add(&revision{Path: r.From, Action: "move/delete", Type: source.Type}, false)
		}
	}
	if !r.deleted() {
		r.Content = strconv.Itoa(len(t.contents))
		t.contents[r.Content] = content
	}
	t.add(r, shelved)
	return nil
}

// add adds a revision to the depot, a shelf or a workspace. Those that are not
// submitted have the number of the revision they are based on.
func (t *txtarReader) add(r *revision, shelved bool) {
	if !t.current.Pending {
		t.revs = append(t.revs, r)
		return
	}
	r.Rev = 1
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
