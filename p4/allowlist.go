package p4

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// An AllowList determines which depot paths may be read. Paths and entries are
// spelled as the server spells them: %40 for @, and so on.
type AllowList struct {
	allowed, embargoed []entry
}

// An entry is one file, or a tree, which ends in a slash.
type entry string

var (
	errNotListed = errors.New("path is outside the allow list")
	errEmbargoed = errors.New("path is embargoed")
	errUndecided = errors.New("path is not UTF-8, and in its unknown encoding it may be an embargoed one")
)

// NewAllowList validates the entries: canonical depot paths, each a file or a tree
// that ends in /... . Wildcards, revisions and //..., which covers all depots, are
// refused, and the list must not be empty (security 9.1.2).
func NewAllowList(allowed, embargoed []string) (AllowList, error) {
	if len(allowed) == 0 {
		return AllowList{}, errors.New("the allow list is empty: list the depot paths that may be reviewed")
	}
	var list AllowList
	var err error
	if list.allowed, err = parseEntries(allowed); err != nil {
		return AllowList{}, fmt.Errorf("allow list: %w", err)
	}
	if list.embargoed, err = parseEntries(embargoed); err != nil {
		return AllowList{}, fmt.Errorf("embargo list: %w", err)
	}
	for _, e := range list.embargoed { // an embargo of a file holds for a tree of its name
		if !strings.HasSuffix(string(e), "/") {
			list.embargoed = append(list.embargoed, e+"/")
		}
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
			return nil, fmt.Errorf("entry %q is a depot, not a file: append /... to allow all of it", text)
		}
		entries = append(entries, entry(path))
	}
	return entries, nil
}

// Check returns nil if path may be read from a server with the case handling, as in
// [ServerInfo]. For an insensitive server allowed entries are compared with ASCII
// folding, as such a server does, and embargoed ones with Unicode folding, as it does in
// unicode mode; in doubt a path is denied. A hybrid server treats names that differ in
// case as different files; how it and servers of unknown case handling compare is not
// known: both ways of comparing must allow the path. An embargo overrides a permission,
// and covers everything below its path, even if the entry lacks the final /....
// Embargoes are compared in Unicode's composed form. A server that is not in unicode mode
// stores each path in the encoding of the client that added it, and does not report the
// encoding: the path is denied if it is embargoed in any encoding.
func (l AllowList) Check(path, caseHandling string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	allow, embargo := exact, foldUnicode
	switch caseHandling {
	case caseSensitive:
		embargo = norm.NFC.String
	case caseInsensitive:
		allow = foldASCII
	}
	switch {
	case covers(l.embargoed, path, embargo):
		return errEmbargoed
	case !utf8.ValidString(path) && slices.ContainsFunc(l.embargoed, func(e entry) bool { return e.mayCover(path, embargo) }):
		return errUndecided
	case !covers(l.allowed, path, allow):
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

// embargoesBelow reports whether there is an embargo below a folder.
func (l AllowList) embargoesBelow(folder string) bool {
	folder = foldUnicode(folder) + "/"
	return slices.ContainsFunc(l.embargoed, func(e entry) bool { return strings.HasPrefix(foldUnicode(string(e)), folder) })
}

// mayCover reports whether there is an encoding in which the path is the entry or
// below it: components outside ASCII may be equal. No encoding has a slash in a letter.
func (e entry) mayCover(path string, fold func(string) string) bool {
	components := strings.Split(path, "/")
	for i, want := range strings.Split(strings.TrimSuffix(string(e), "/"), "/") {
		if i == len(components) || isASCII(want) != isASCII(components[i]) || isASCII(want) && fold(want) != fold(components[i]) {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// checkPath refuses every path that is not the canonical spelling of a depot path:
// p4 does not normalize paths, so //depot/a/../b would pass as a path below
// //depot/a. A server on Windows may accept \ for / in the names of its files.
func checkPath(path string) error {
	rest, ok := strings.CutPrefix(path, "//")
	switch {
	case !ok:
		return errors.New("path does not begin with //")
	case strings.ContainsFunc(path, isControl):
		return errors.New("path has a control character")
	case strings.Contains(path, "...") || strings.Contains(path, "*"):
		return errors.New("path has a wildcard")
	case strings.ContainsAny(path, "@#"):
		return errors.New("path has a revision specifier")
	case slices.Contains(percents.FindAllString(path, -1), "%"):
		return errors.New("path has a % that is not one of %40 %23 %25 %2A")
	}
	components := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if slices.Contains(components, ".") || slices.Contains(components, "..") || slices.Contains(strings.Split(rest, "/"), "") {
		return errors.New("path has an empty or relative component")
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// percents matches the % of each encoded character, and all others alone.
var percents = regexp.MustCompile(`%(?:40|23|25|2A)?`)

func exact(s string) string { return s }

// foldUnicode maps letters that differ only in case, or in how accents are encoded, to one.
func foldUnicode(s string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(s))) }

// foldASCII lowers A to Z and keeps every other byte: names need not be UTF-8.
func foldASCII(s string) string {
	folded := []byte(s)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}
