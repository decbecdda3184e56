package p4

import (
	"errors"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Owners says who is told of changes to which paths.
type Owners []ownership

// An ownership is one entry: whoever owns what matches is told.
type ownership struct {
	path      pathPattern
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
	path, rest, err := parsePattern(text)
	if err != nil {
		return ownership{}, err
	}
	o := ownership{path: path}
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

// Of returns whoever owns one of the files, in the order of the entries.
func (o Owners) Of(files []review.File) []review.Recipient {
	var told []review.Recipient
	for _, entry := range o {
		if !entry.path.matchesAny(files) {
			continue
		}
		for _, address := range entry.addresses {
			told = append(told, review.Recipient{Address: address, Role: review.RoleOwner})
		}
	}
	return told
}
