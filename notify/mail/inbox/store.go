package inbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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

// An Entry is what the inbox says of a message without opening it.
type Entry struct {
	ID         string    `json:"id"`
	MessageID  string    `json:"message_id"` // without angle brackets
	From       string    `json:"from"`       // From and To are the envelope's
	To         []string  `json:"to"`
	Subject    string    `json:"subject"`
	ReceivedAt time.Time `json:"received_at"`
	Size       int64     `json:"size"` // bytes, with the envelope's header fields
}

const (
	suffix    = ".eml"
	temporary = ".incoming-"
	// idTime begins an id, so that ids sort by the time of receipt.
	idTime = "20060102T150405.000000000Z"
	// The envelope is kept in front of the message, as mail servers do.
	fieldFrom = "Return-Path"
	fieldTo   = "Envelope-To"
)

// A store is the mail on disk and an index of it in memory. Safe for
// concurrent use.
type store struct {
	dir string

	mu      sync.Mutex
	entries []Entry // oldest first
	// open are the transactions that may yet keep a message; each channel is
	// closed at the end of one.
	open   map[chan struct{}]bool
	closed bool
}

// openStore reads the index anew from the files: they are all the state there is.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir, open: map[chan struct{}]bool{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	for _, f := range files {
		switch name := f.Name(); {
		case strings.HasPrefix(name, temporary):
			// Never confirmed to anybody: its sender was cut off or the write failed.
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return nil, fmt.Errorf("open inbox: remove what a crash left: %w", err)
			}
		case strings.HasSuffix(name, suffix):
			e, err := readEntry(filepath.Join(dir, name))
			if err != nil {
				return nil, fmt.Errorf("open inbox: %w", err)
			}
			s.entries = append(s.entries, e)
		}
	}
	return s, nil
}

func readEntry(path string) (Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Entry{}, err
	}
	return newEntry(strings.TrimSuffix(filepath.Base(path), suffix), f, info.Size()), nil
}

// newEntry describes a message. One whose header is no header is listed too:
// it was confirmed.
func newEntry(id string, r io.Reader, size int64) Entry {
	e := Entry{ID: id, To: []string{}, Size: size, Subject: "(unreadable header)"}
	stamp, _, _ := strings.Cut(id, "-")
	e.ReceivedAt, _ = time.Parse(idTime, stamp)
	fields, err := textproto.ReadHeader(bufio.NewReader(r))
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

// keep writes a message to disk and returns when it is safe there.
func (s *store) keep(from string, to []string, message []byte) (Entry, error) {
	var b bytes.Buffer
	writeField(&b, fieldFrom, from)
	for _, t := range to {
		writeField(&b, fieldTo, t)
	}
	b.Write(message)
	id := newID(time.Now())
	if err := writeFile(s.dir, id+suffix, b.Bytes()); err != nil {
		return Entry{}, fmt.Errorf("keep message: %w", err)
	}
	e := newEntry(id, bytes.NewReader(b.Bytes()), int64(b.Len()))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
	slices.SortFunc(s.entries, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return e, nil
}

func newID(now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s-%x", now.UTC().Format(idTime), random)
}

// writeField writes an address of the envelope as a header field.
func writeField(b *bytes.Buffer, name, address string) {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, address)
	fmt.Fprintf(b, "%s: <%s>\r\n", name, clean)
}

// writeFile makes the file appear whole and durable, or not at all.
func writeFile(dir, name string, data []byte) (err error) {
	f, err := os.CreateTemp(dir, temporary+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename in dir survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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

// settle waits until every transaction that is open now has ended, or ctx has;
// it reports which. After true, what is not in the store was not confirmed and
// will not come from a sender that had given up before.
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

// close refuses new transactions and waits for those that are open.
func (s *store) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.settle(context.Background())
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// find returns the entries that matches accepts, newest first.
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

// read returns a message as it is on disk; ok is false if there is none.
func (s *store) read(id string) (e Entry, raw []byte, ok bool, err error) {
	found := s.find(func(e Entry) bool { return e.ID == id })
	if len(found) == 0 {
		return Entry{}, nil, false, nil
	}
	raw, err = os.ReadFile(filepath.Join(s.dir, id+suffix))
	if err != nil {
		return Entry{}, nil, true, fmt.Errorf("read message: %w", err)
	}
	return found[0], raw, true, nil
}
