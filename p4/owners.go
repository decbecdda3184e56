package p4

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// Owners says who is told of changes to which paths.
type Owners []ownership

// An ownership is one entry: whoever owns what matches is told.
type ownership struct {
	path      *regexp.Regexp
	addresses []string
}

// NewOwners reads entries such as "//depot/db/....sql dba@example.com": a path
// with p4's wildcards, in double quotes if it has blanks, and behind it one or
// more addresses. Upper and lower case are the same in paths: a mail too many
// does less harm than one too few. The error has class CONFIG_INVALID.
func NewOwners(entries []string) (Owners, error) {
	var owners Owners
	for i, text := range entries {
		o, err := parseOwnership(text)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "owners, entry %d: %w: want //depot/path/... address", i+1, err)
		}
		owners = append(owners, o)
	}
	return owners, nil
}

func parseOwnership(text string) (ownership, error) {
	path, rest, err := cutPath(text)
	if err != nil {
		return ownership{}, err
	}
	pattern, err := compileWildcards(path)
	if err != nil {
		return ownership{}, err
	}
	o := ownership{path: pattern}
	for field := range strings.FieldsSeq(rest) {
		address, err := review.ParseAddress(field)
		if err != nil {
			return ownership{}, err
		}
		o.addresses = append(o.addresses, address)
	}
	if len(o.addresses) == 0 {
		return ownership{}, errors.New("there is no address behind the path")
	}
	return o, nil
}

// cutPath divides an entry into its path, which is in double quotes if it has
// blanks, and what is written behind it.
func cutPath(text string) (path, rest string, err error) {
	text = strings.TrimSpace(text)
	unquoted, quoted := strings.CutPrefix(text, `"`)
	if !quoted {
		path, rest, _ = strings.Cut(text, " ")
		return path, rest, nil
	}
	path, rest, closed := strings.Cut(unquoted, `"`)
	if !closed {
		return "", "", errors.New("the quote before the path has no end")
	}
	return path, rest, nil
}

// compileWildcards makes a pattern of a path in which ... stands for anything
// and * for anything but a slash. Paths of changes are decoded, so %40 in the
// pattern means the character itself.
func compileWildcards(path string) (*regexp.Regexp, error) {
	switch {
	case !strings.HasPrefix(path, "//"):
		return nil, errors.New("the path does not begin with //")
	case strings.ContainsAny(path, "@#"):
		return nil, errors.New("the path has a revision: write %40 for @ and %23 for #")
	}
	var pattern strings.Builder
	for i, part := range strings.Split(path, "...") {
		if i > 0 {
			pattern.WriteString(`.*`)
		}
		for j, literal := range strings.Split(part, "*") {
			if j > 0 {
				pattern.WriteString(`[^/]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(decodePath(literal)))
		}
	}
	return regexp.Compile(`(?is)^` + pattern.String() + `$`)
}

// Of returns whoever owns one of the files, in the order of the entries.
func (o Owners) Of(files []review.File) []review.Recipient {
	var told []review.Recipient
	for _, entry := range o {
		if !slices.ContainsFunc(files, func(f review.File) bool { return entry.path.MatchString(f.DepotPath) }) {
			continue
		}
		for _, address := range entry.addresses {
			told = append(told, review.Recipient{Address: address, Role: review.RoleOwner})
		}
	}
	return told
}
