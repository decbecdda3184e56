package p4

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An AllowList says which depot paths may be read (security 9.1). Paths and
// entries are in the server's spelling: %40 for @, and so on.
type AllowList struct {
	allowed, embargoed []entry
}

// An entry is one file, or a tree whose path ends in a slash.
type entry string

// The reasons for which a path is denied.
var (
	errNotListed = errors.New("path is outside the allow-list")
	errEmbargoed = errors.New("path is embargoed")
)

// NewAllowList checks and keeps the entries. Every entry is a canonical depot
// path, alone or with /... behind it; wildcards and revisions are refused, as
// is //..., which would include every depot there is.
func NewAllowList(allowed, embargoed []string) (AllowList, error) {
	if len(allowed) == 0 {
		return AllowList{}, errors.New("the allow-list is empty: list the depot paths that may be reviewed")
	}
	var list AllowList
	var err error
	if list.allowed, err = parseEntries(allowed); err != nil {
		return AllowList{}, fmt.Errorf("allow-list: %w", err)
	}
	if list.embargoed, err = parseEntries(embargoed); err != nil {
		return AllowList{}, fmt.Errorf("embargo list: %w", err)
	}
	return list, nil
}

func parseEntries(texts []string) ([]entry, error) {
	entries := make([]entry, 0, len(texts))
	for _, text := range texts {
		path, isTree := strings.CutSuffix(text, "/...")
		if err := checkPath(path); err != nil {
			return nil, fmt.Errorf("entry %q: %w: want //depot/path/... or //depot/path/file", text, err)
		}
		if isTree {
			path += "/"
		} else if !strings.Contains(path[2:], "/") {
			return nil, fmt.Errorf("entry %q names a depot, not what is in it: end it in /... for all of it", text)
		}
		entries = append(entries, entry(path))
	}
	return entries, nil
}

// Check returns nil if path may be read, else the reason why not. foldCase is
// set for servers that take upper and lower case letters for the same; they
// fold ASCII, and so does Check. In unicode mode they fold more, which Check does
// for embargoes only: in doubt a path is denied. An embargo beats a permission,
// and holds for what lies below a path that was embargoed as a file.
func (l AllowList) Check(path string, foldCase bool) error {
	if err := checkPath(path); err != nil {
		return err
	}
	allowing, embargoing := asItIs, asItIs
	if foldCase {
		allowing, embargoing = foldASCII, foldUnicode
	}
	switch {
	case covers(l.embargoed, path, embargoing), below(l.embargoed, path, embargoing):
		return errEmbargoed
	case !covers(l.allowed, path, allowing):
		return errNotListed
	}
	return nil
}

func covers(entries []entry, path string, fold func(string) string) bool {
	path = fold(path)
	return slices.ContainsFunc(entries, func(e entry) bool {
		text := fold(string(e))
		return path == text || strings.HasSuffix(text, "/") && strings.HasPrefix(path, text)
	})
}

// below reports whether the path lies below an entry that names no tree: whoever
// embargoed it forgot the /... behind it.
func below(entries []entry, path string, fold func(string) string) bool {
	path = fold(path)
	return slices.ContainsFunc(entries, func(e entry) bool { return strings.HasPrefix(path, fold(string(e))+"/") })
}

// checkPath refuses everything that is not the one canonical spelling of a
// depot path: p4's own matching normalises nothing, so //depot/a/../b would
// pass for a path below //depot/a. A server on Windows may take \ for / where
// it keeps its files.
func checkPath(path string) error {
	rest, ok := strings.CutPrefix(path, "//")
	switch {
	case !ok:
		return errors.New("path does not begin with //")
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("path has a control character")
	case strings.Contains(path, "...") || strings.Contains(path, "*"):
		return errors.New("path has a wildcard")
	case strings.ContainsAny(path, "@#"):
		return errors.New("path has a revision specifier")
	case !percentsAreEncoded(path):
		return errors.New("path has a % that is not one of %40 %23 %25 %2A")
	}
	components := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if slices.Contains(components, ".") || slices.Contains(components, "..") || slices.Contains(strings.Split(rest, "/"), "") {
		return errors.New("path has an empty or relative component")
	}
	return nil
}

func percentsAreEncoded(path string) bool {
	_, rest, found := strings.Cut(path, "%")
	for ; found; _, rest, found = strings.Cut(rest, "%") {
		if len(rest) < 2 || !slices.Contains([]string{"40", "23", "25", "2A"}, rest[:2]) {
			return false
		}
	}
	return true
}

func asItIs(s string) string { return s }

// foldUnicode takes all letters for the same that differ in case.
func foldUnicode(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// foldASCII lowers A to Z and leaves every other byte, as an insensitive
// server does: names need not be UTF-8.
func foldASCII(s string) string {
	folded := []byte(s)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}
