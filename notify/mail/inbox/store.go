package inbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-message/textproto"
)

// An Entry describes a message.
type Entry struct {
	ID         string    `json:"id"`
	MessageID  string    `json:"message_id"` // without angle brackets
	From       string    `json:"from"`       // From and To are the envelope's
	To         []string  `json:"to"`
	Subject    string    `json:"subject"`
	ReceivedAt time.Time `json:"received_at"`
}

const (
	suffix    = ".eml"
	temporary = ".incoming-"
	// idTime starts an id, so that ids sort by the time of receipt.
	idTime = "20060102T150405.000000000Z"
	// The envelope is stored in front of the message, as mail servers do.
	fieldFrom = "Return-Path"
	fieldTo   = "Envelope-To"
)

// A store is the mail on disk and an index of it in memory. Safe for concurrent
// use.
type store struct {
	dir string

	mu      sync.Mutex
	entries []Entry // oldest first
	// open are the transactions that may still store a message; each channel is
	// closed at the end of one.
	open   map[chan struct{}]bool
	closed bool
}

// openStore creates the index from the files, which are the only state.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir, open: map[chan struct{}]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		id, stored := strings.CutSuffix(f.Name(), suffix)
		switch {
		case strings.HasPrefix(f.Name(), temporary):
			err = os.Remove(path) // left by a crash, and never confirmed
		case stored:
			var raw []byte
			raw, err = os.ReadFile(path)
			s.entries = append(s.entries, newEntry(id, raw))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newEntry describes a message. It describes one with an unreadable header too:
// the message was confirmed.
func newEntry(id string, raw []byte) Entry {
	e := Entry{ID: id, To: []string{}, Subject: "(unreadable header)"}
	stamp, _, _ := strings.Cut(id, "-")
	e.ReceivedAt, _ = time.Parse(idTime, stamp)
	fields, err := textproto.ReadHeader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return e
	}
	h := mail.Header{Header: message.Header{Header: fields}}
	e.From = strings.Trim(h.Get(fieldFrom), "<> ")
	for f := h.FieldsByKey(fieldTo); f.Next(); {
		e.To = append(e.To, strings.Trim(f.Value(), "<> "))
	}
	e.MessageID = strings.Trim(h.Get("Message-Id"), "<> \t")
	if e.Subject, err = h.Subject(); err != nil {
		e.Subject = h.Get("Subject")
	}
	return e
}

// add writes a message to disk, completely or not at all, and returns its id.
func (s *store) add(from string, to []string, body []byte) (id string, err error) {
	var b bytes.Buffer
	writeField(&b, fieldFrom, from)
	for _, t := range to {
		writeField(&b, fieldTo, t)
	}
	b.Write(body)
	id = time.Now().UTC().Format(idTime) + "-" + rand.Text()
	unfinished := filepath.Join(s.dir, temporary+id)
	if err := os.WriteFile(unfinished, b.Bytes(), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, filepath.Join(s.dir, id+suffix)); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, newEntry(id, b.Bytes()))
	slices.SortFunc(s.entries, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return id, nil
}

// writeField writes an address of the envelope as a header field.
func writeField(b *bytes.Buffer, name, address string) {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, address)
	fmt.Fprintf(b, "%s: <%s>\r\n", name, printable)
}

// begin opens a transaction, which the caller must end.
func (s *store) begin() (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the inbox is closed")
	}
	done := make(chan struct{})
	s.open[done] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, done)
		close(done)
	}, nil
}

// settle waits until every transaction that is open now has ended, or ctx has
// ended, and reports which. After true, a message that is not in the store was
// not confirmed, and no sender that had given up before can still store it.
func (s *store) settle(ctx context.Context) bool {
	s.mu.Lock()
	waiting := make([]chan struct{}, 0, len(s.open))
	for done := range s.open {
		waiting = append(waiting, done)
	}
	s.mu.Unlock()
	for _, done := range waiting {
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// close rejects new transactions and waits for the open ones.
func (s *store) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.settle(context.Background())
}

// find returns the entries that match, newest first.
func (s *store) find(matches func(Entry) bool) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Entry{}
	for _, e := range slices.Backward(s.entries) {
		if matches(e) {
			found = append(found, e)
		}
	}
	return found
}
