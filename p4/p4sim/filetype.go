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

// A file is a revision with what its content says: what "p4 print" would send.
type file struct {
	revision
	kind    string // the file type
	content []byte // with keywords expanded
}

// size and digest count the expanded content, as the server does.
func (f *file) size() string   { return strconv.Itoa(len(f.content)) }
func (f *file) digest() string { return fmt.Sprintf("%X", md5.Sum(f.content)) } //nolint:gosec // as above

// binary reports whether the file is compared and sent as bytes.
func (f *file) binary() bool {
	base, _, _ := strings.Cut(f.kind, "+")
	switch base {
	case "binary", "apple", "resource", "ubinary", "xbinary", "tempobj", "ctempobj":
		return true
	}
	return false
}

// open reads a revision's content and decides its type.
func (s *session) open(r *revision) (*file, error) {
	f := &file{revision: *r, kind: r.Type}
	if r.Content != "" {
		content, err := s.depot.contents.read(r.Content)
		if err != nil {
			return nil, fmt.Errorf("read %s#%d: %w", r.Path, r.Rev, err)
		}
		f.content = content
	}
	if f.kind == "" && r.deleted() {
		return f, s.inheritType(f)
	}
	if f.kind == "" {
		f.kind = guessType(f.content, r.Exec)
	}
	return f, s.expandKeywords(f)
}

// inheritType gives a deleted file the type it had.
func (s *session) inheritType(f *file) error {
	previous, err := s.depot.revision(f.Path, f.Rev-1)
	if err != nil || previous == nil {
		return err
	}
	before, err := s.open(previous)
	if err == nil {
		f.kind = before.kind
	}
	return err
}

// guessType is what "p4 add" would choose.
func guessType(content []byte, exec bool) string {
	kind := "text"
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		kind = "binary"
	}
	if exec {
		kind += "+x"
	}
	return kind
}

var (
	keywordOld = regexp.MustCompile(`\$(Id|Header)(:[^$\n]*)?\$`)
	keywordAll = regexp.MustCompile(`\$(Id|Header|Author|DateTimeUTC|DateTimeTZ|DateTime|DateUTC|Date|Change|File|Revision)(:[^$\n]*)?\$`)
)

// keywords is the pattern of what a file type expands, or nil.
func keywords(kind string) *regexp.Regexp {
	base, mods, _ := strings.Cut(kind, "+")
	switch {
	case strings.Contains(mods, "ko"):
		return keywordOld
	case strings.Contains(mods, "k"), base == "ktext", base == "kxtext":
		return keywordAll
	}
	return nil
}

func (s *session) expandKeywords(f *file) error {
	pattern := keywords(f.kind)
	if pattern == nil || s.unexpanded {
		return nil
	}
	c, err := s.depot.change(f.Change)
	if err != nil {
		return err
	}
	author := ""
	if c != nil {
		author = c.User
	}
	f.content = pattern.ReplaceAllFunc(f.content, func(found []byte) []byte {
		name := string(pattern.FindSubmatch(found)[1])
		return []byte("$" + name + ": " + s.keyword(name, f, author) + " $")
	})
	return nil
}

func (s *session) keyword(name string, f *file, author string) string {
	switch name {
	case "Author":
		return author
	case "Change":
		return strconv.Itoa(f.Change)
	case "File":
		return string(f.Path)
	case "Revision":
		return "#" + strconv.Itoa(f.Rev)
	case "Date":
		return formatTime(s.loc, "2006/01/02", f.Time)
	case "DateUTC":
		return formatTime(time.UTC, "2006/01/02", f.Time)
	case "DateTime":
		return formatTime(s.loc, dateTime, f.Time)
	case "DateTimeUTC":
		return formatTime(time.UTC, dateTime, f.Time)
	case "DateTimeTZ":
		return formatTime(s.loc, dateTime+" -0700 MST", f.Time)
	}
	return string(f.Path) + "#" + strconv.Itoa(f.Rev)
}
