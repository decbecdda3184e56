package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // Perforce's digests are MD5
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A file is a revision with its content, as p4 print would send it.
type file struct {
	revision
	fileType string
	content  []byte // with keywords expanded
}

// size and digest count the expanded content, as the server does.
func (f *file) size() string   { return strconv.Itoa(len(f.content)) }
func (f *file) digest() string { return fmt.Sprintf("%X", md5.Sum(f.content)) } //nolint:gosec // as above

// binary reports whether the content is sent as bytes.
func (f *file) binary() bool { return strings.HasPrefix(f.fileType, "binary") }

// open reads a revision's content and determines its type.
func (s *session) open(r *revision) (*file, error) {
	f := &file{revision: *r, fileType: r.Type}
	if f.deleted() {
		return f, s.inheritType(f)
	}
	if r.Content != "" {
		content, err := s.depot.contents.read(r.Content)
		if err != nil {
			return nil, fmt.Errorf("read %s#%d: %w", r.Path, r.Rev, err)
		}
		f.content = content
	}
	if f.fileType == "" {
		f.fileType = guessType(f.content, r.Exec)
	}
	return f, s.expandKeywords(f)
}

// inheritType gives a deleted file the type that it had.
func (s *session) inheritType(f *file) error {
	if f.fileType != "" {
		return nil
	}
	previous, err := s.depot.revision(f.Path, f.Rev-1)
	if err != nil || previous == nil {
		return err
	}
	before, err := s.open(previous)
	if err == nil {
		f.fileType = before.fileType
	}
	return err
}

// guessType returns the type that p4 add would choose.
func guessType(content []byte, exec bool) string {
	fileType := "text"
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		fileType = "binary"
	}
	if exec {
		fileType += "+x"
	}
	return fileType
}

var keyword = regexp.MustCompile(`\$(Id|Header|Author|DateTime|Date|Change|File|Revision)(:[^$\n]*)?\$`)

// expandKeywords expands $Id$ and the like if the type of the file has +k.
func (s *session) expandKeywords(f *file) error {
	if _, modifiers, _ := strings.Cut(f.fileType, "+"); !strings.Contains(modifiers, "k") {
		return nil
	}
	c, err := s.depot.change(f.Change)
	if c == nil || err != nil {
		return err // nil if the file is shelved
	}
	at, rev := time.Unix(f.Time, 0).UTC(), "#"+strconv.Itoa(f.Rev)
	values := map[string]string{
		"Author": c.User, "Change": strconv.Itoa(c.Number), "File": string(f.Path), "Revision": rev,
		"Date": at.Format("2006/01/02"), "DateTime": at.Format("2006/01/02 15:04:05"),
		"Id": string(f.Path) + rev, "Header": string(f.Path) + rev,
	}
	f.content = keyword.ReplaceAllFunc(f.content, func(found []byte) []byte {
		name := string(keyword.FindSubmatch(found)[1])
		return []byte("$" + name + ": " + values[name] + " $")
	})
	return nil
}
