package p4

import (
	"errors"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Owners are the recipients of changes to paths.
type Owners []ownership

type ownership struct {
	path      pathPattern
	addresses []string
}

// NewOwners parses entries such as "//depot/db/....sql dba@example.com": a path
// with p4's wildcards, in double quotes if it has blanks, and one or more
// addresses. The case of letters in paths is ignored: an unneeded mail does less
// harm than a missing one. Its errors have the class ConfigInvalid.
func NewOwners(entries []string) (Owners, error) {
	return parseEach("owners, ", "//depot/path/... address", entries, func(path pathPattern, rest string) (ownership, error) {
		return parseOwners(ownership{path: path}, rest)
	})
}

func parseOwners(o ownership, rest string) (ownership, error) {
	for field := range strings.FieldsSeq(rest) {
		address, err := review.ParseAddress(field)
		if err != nil {
			return ownership{}, err
		}
		o.addresses = append(o.addresses, address)
	}
	if len(o.addresses) == 0 {
		return ownership{}, errors.New("there is no address after the path")
	}
	return o, nil
}

// Of returns the owners of the files, in the order of the entries.
func (o Owners) Of(files []review.File) []review.Recipient {
	var owners []review.Recipient
	for _, entry := range o {
		if !entry.path.matchesAny(files) {
			continue
		}
		for _, address := range entry.addresses {
			owners = append(owners, review.Recipient{Address: address, Role: review.RoleOwner})
		}
	}
	return owners
}
