// Package glob matches depot paths against the patterns of the configuration: **
// matches any directories, * and ? match within one, {a,b} is an alternative, [ab] a
// set of characters.
//
// A pattern that begins with // matches whole depot paths. Any other pattern matches
// the end of a path, such as *.go, vendor/** and docs/*.md. Letters match in either
// case because a depot may not distinguish them.
package glob

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// A Pattern is a parsed pattern. The zero Pattern matches nothing.
type Pattern struct {
	text string // as written
	glob string // lower case, without the leading slashes of a depot path
	// name is set for a pattern without directories, which matches the base name.
	name bool
}

// Parse parses a pattern.
func Parse(text string) (Pattern, error) {
	glob, whole := strings.CutPrefix(fold(text), "//")
	switch {
	case strings.TrimSpace(text) == "":
		return Pattern{}, errors.New("pattern is empty: write one such as //depot/project/** or *.go")
	case strings.Contains(text, "..."):
		return Pattern{}, fmt.Errorf("pattern %q has the p4 wildcard ...: write **", text)
	case strings.HasPrefix(glob, "/"):
		return Pattern{}, fmt.Errorf("pattern %q begins with one slash: write // for a whole depot path, or none for the end of a path", text)
	case !doublestar.ValidatePattern(glob):
		return Pattern{}, fmt.Errorf("pattern %q is malformed: close its brackets and braces", text)
	}
	p := Pattern{text: text, glob: glob, name: !whole && !strings.Contains(glob, "/")}
	if !whole && !p.name {
		p.glob = "**/" + glob
	}
	return p, nil
}

// fold returns s in lower case. A letter that only looks like one of ASCII, such as the sign
// of kelvin, stays what it is: a path with it is another path.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); r < utf8.RuneSelf || lower >= utf8.RuneSelf {
			return lower
		}
		return r
	}, s)
}

// String returns the pattern as written.
func (p Pattern) String() string { return p.text }

// match matches a path in lower case without its leading slashes, and its base name.
func (p Pattern) match(full, base string) bool {
	if p.name {
		return doublestar.MatchUnvalidated(p.glob, base)
	}
	return p.glob != "" && doublestar.MatchUnvalidated(p.glob, full)
}

// A List is a list of patterns. The first that matches counts.
type List []Pattern

// ParseList parses patterns. The error joins all problems.
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

// MustParse is like [ParseList] but panics if a pattern is invalid.
func MustParse(texts ...string) List {
	list, err := ParseList(texts)
	if err != nil {
		panic(err)
	}
	return list
}

// Match returns the first pattern that matches a depot path, as written.
func (l List) Match(depotPath string) (pattern string, ok bool) {
	full := strings.TrimPrefix(fold(depotPath), "//")
	base := path.Base(full)
	for _, p := range l {
		if p.match(full, base) {
			return p.text, true
		}
	}
	return "", false
}
