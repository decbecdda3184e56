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

// open reads a revision's content and determines its type. A deleted file has the type
// that it had before.
func (s *session) open(r *revision) (*file, error) {
	f := &file{revision: *r, fileType: r.Type}
	if f.deleted() {
		if before := s.depot.before(r); f.fileType == "" && before != nil {
			opened, err := s.open(before)
			if err != nil {
				return nil, err
			}
			f.fileType = opened.fileType
		}
		return f, nil
	}
	if r.Content != "" {
		content, err := s.depot.content(r.Content)
		if err != nil {
			return nil, fmt.Errorf("read %s#%d: %w", r.Path, r.Rev, err)
		}
		f.content = content
	}
	if f.fileType == "" {
		f.fileType = guessType(f.content, r.Exec)
	}
	s.expandKeywords(f)
	return f, nil
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
func (s *session) expandKeywords(f *file) {
	if _, modifiers, _ := strings.Cut(f.fileType, "+"); !strings.Contains(modifiers, "k") {
		return // without reading the change, which holds all its files
	}
	c := s.depot.change(f.Change) // nil if the file is shelved
	if c == nil {
		return
	}
	at, rev := time.Unix(f.Time, 0).UTC(), "#"+strconv.Itoa(f.Rev)
	values := map[string]string{
		"Author": c.User, "Change": strconv.Itoa(c.Number), "File": f.Path, "Revision": rev,
		"Date": at.Format("2006/01/02"), "DateTime": at.Format("2006/01/02 15:04:05"),
		"Id": f.Path + rev, "Header": f.Path + rev,
	}
	f.content = keyword.ReplaceAllFunc(f.content, func(found []byte) []byte {
		name := string(keyword.FindSubmatch(found)[1])
		return []byte("$" + name + ": " + values[name] + " $")
	})
}
