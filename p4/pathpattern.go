package p4

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A pathPattern is a path with p4's wildcards, in an entry of [Owners].
type pathPattern struct {
	text   string // as it is written
	regexp *regexp.Regexp
}

// parsePattern parses the pattern at the start of an entry, and returns the rest.
func parsePattern(entry string) (p pathPattern, rest string, err error) {
	p.text, rest, err = cutPath(entry)
	if err != nil {
		return p, "", err
	}
	p.regexp, err = compileWildcards(p.text)
	return p, rest, err
}

// parseEach parses the pattern at the start of each entry, and with parse the rest. Its
// errors have the class ConfigInvalid; want shows the form of an entry.
func parseEach[T any](list, want string, entries []string, parse func(path pathPattern, rest string) (T, error)) ([]T, error) {
	var all []T
	for i, text := range entries {
		path, rest, err := parsePattern(text)
		var one T
		if err == nil {
			one, err = parse(path, rest)
		}
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "%sentry %d: %w: want %s", list, i+1, err, want)
		}
		all = append(all, one)
	}
	return all, nil
}

// matchesAny reports whether the pattern matches one of the files.
func (p pathPattern) matchesAny(files []review.File) bool {
	return slices.ContainsFunc(files, func(f review.File) bool { return p.regexp.MatchString(f.DepotPath) })
}

// cutPath divides an entry into its path, which is in double quotes if it has
// blanks, and the rest.
func cutPath(text string) (path, rest string, err error) {
	text = strings.TrimSpace(text)
	unquoted, quoted := strings.CutPrefix(text, `"`)
	if !quoted {
		path, rest, _ = strings.Cut(text, " ")
		return path, rest, nil
	}
	path, rest, closed := strings.Cut(unquoted, `"`)
	if !closed {
		return "", "", errors.New("the quote before the path is not closed")
	}
	return path, rest, nil
}

// compileWildcards compiles a path in which ... matches any text and * any text
// without a slash. The paths of a change are decoded, so %40 in the pattern
// matches the character itself.
func compileWildcards(path string) (*regexp.Regexp, error) {
	switch {
	case !strings.HasPrefix(path, "//"):
		return nil, errors.New("the path does not begin with //")
	case strings.ContainsAny(path, "@#"):
		return nil, errors.New("the path has a revision: write %40 for @ and %23 for #")
	}
	return regexp.Compile(`(?is)^` + wildcards.Replace(regexp.QuoteMeta(path)) + `$`)
}

// wildcards translates the wildcards and the encoded characters of a quoted path.
var wildcards = strings.NewReplacer(`\.\.\.`, `.*`, `\*`, `[^/]*`, "%40", "@", "%23", "#", "%25", "%", "%2A", `\*`)
