// Package glob matches depot paths against patterns that people write in the
// configuration: ** stands for any directories, * and ? for anything within
// one, {a,b} for alternatives, [ab] for characters.
//
// A pattern that begins with // is about whole depot paths. Any other is about
// the end of a path, at any depth: *.go, vendor/** and docs/*.md. Letters match
// in either case, for a depot may not tell them apart.
package glob

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A Pattern is a checked pattern. The zero Pattern matches nothing.
type Pattern struct {
	text string // as it was written
	glob string // folded, without the slashes that begin a depot path
	// name is set for a pattern without directories, of which only the last
	// part of a path needs to be looked at.
	name bool
}

// Parse checks a pattern. Its errors say what to write instead.
func Parse(text string) (Pattern, error) {
	glob, whole := strings.CutPrefix(strings.ToLower(text), "//")
	switch {
	case strings.TrimSpace(text) == "":
		return Pattern{}, errors.New("pattern is empty: write one such as //depot/project/** or *.go")
	case strings.Contains(text, "..."):
		return Pattern{}, fmt.Errorf("pattern %q has p4's wildcard: write ** for any directories", text)
	case strings.HasPrefix(glob, "/"):
		return Pattern{}, fmt.Errorf("pattern %q begins with one slash: begin with // for whole depot paths, with none for the ends of paths", text)
	case !doublestar.ValidatePattern(glob):
		return Pattern{}, fmt.Errorf("pattern %q is malformed: close its brackets and braces", text)
	}
	p := Pattern{text: text, glob: glob, name: !whole && !strings.Contains(glob, "/")}
	if !whole && !p.name {
		p.glob = "**/" + glob
	}
	return p, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// match takes a folded path without the slashes at its begin, and its last part.
func (p Pattern) match(full, base string) bool {
	if p.name {
		return doublestar.MatchUnvalidated(p.glob, base)
	}
	return p.glob != "" && doublestar.MatchUnvalidated(p.glob, full)
}

// A List is patterns of which the first that matches counts.
type List []Pattern

// ParseList checks patterns; an error joins all problems.
func ParseList(texts []string) (List, error) {
	var problems []error
	list := make(List, len(texts))
	for i, text := range texts {
		var err error
		list[i], err = Parse(text)
		problems = append(problems, err)
	}
	return list, errors.Join(problems...)
}

// MustParse is ParseList for patterns of the source; it panics if one is wrong.
func MustParse(texts ...string) List {
	list, err := ParseList(texts)
	if err != nil {
		panic(err)
	}
	return list
}

// Match returns the first pattern that matches a depot path, as it was written.
func (l List) Match(depotPath string) (pattern string, ok bool) {
	full := strings.TrimPrefix(strings.ToLower(depotPath), "//")
	base := path.Base(full)
	for _, p := range l {
		if p.match(full, base) {
			return p.text, true
		}
	}
	return "", false
}
