package p4

import (
	"context"
	"errors"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// readRecipients sets the author and, unless authorOnly is set, the users who
// subscribed to files of the changelist in the Reviews field of p4 user: the author
// first, no user or address twice. Users without a usable address are unresolved.
//
// What the account may not read is missing, and a gap of the change.
func (x *fetch) readRecipients(ctx context.Context, authorOnly bool) error {
	address, err := x.addressOf(ctx, x.user)
	if err := x.orGap(review.GapAuthor, err); err != nil {
		return err
	}
	x.addRecipient(x.user, address, review.RoleAuthor)
	if authorOnly || x.Restricted {
		return nil
	}
	records, err := x.Stats(ctx, command.Cmd{Name: "reviews", Flags: []string{"-c"}, Operands: []string{x.Number.String()}})
	if err := x.orGap(review.GapSubscribers, err); err != nil {
		return err
	}
	for _, rec := range records {
		x.addRecipient(rec.Fields["user"], rec.Fields["email"], review.RoleSubscriber)
	}
	return nil
}

// addressOf returns the address of a user, "" if the server does not know the user.
// It runs p4 users, because p4 user -o invents a user who does not exist.
func (s *server) addressOf(ctx context.Context, user string) (string, error) {
	if user == "" || user[0] == '-' || strings.ContainsAny(user, "* \t\r\n\x00") {
		return "", nil // not a user name; * would list all users
	}
	records, err := s.Stats(ctx, command.Cmd{Name: "users", Operands: []string{user}})
	if err != nil {
		return "", err
	}
	for _, rec := range records {
		if s.fold(rec.Fields["User"]) == s.fold(user) {
			return rec.Fields["Email"], nil
		}
	}
	return "", nil
}

// addRecipient keeps the first recipient of each user and of each address.
func (x *fetch) addRecipient(user, email string, role review.Role) {
	name := x.name(user)
	parsed, err := mail.ParseAddress(email)
	isSame := func(other string) bool { return x.fold(other) == x.fold(name) }
	switch {
	case slices.ContainsFunc(x.Unresolved, isSame):
	case slices.ContainsFunc(x.Recipients, func(r review.Recipient) bool {
		return isSame(r.User) || err == nil && strings.EqualFold(r.Address, parsed.Address)
	}):
	case err == nil:
		x.Recipients = append(x.Recipients, review.Recipient{User: name, Address: parsed.Address, Role: role})
	case name != "":
		x.Unresolved = append(x.Unresolved, name)
	}
}

// Owners are the recipients of changes to paths.
type Owners []owner

type owner struct {
	path      *regexp.Regexp
	addresses []string
}

// NewOwners parses entries such as "//depot/db/....sql dba@example.com": a path
// with p4's wildcards, in double quotes if it has blanks, and one or more
// addresses. The case of letters in paths is ignored: an unneeded mail does less
// harm than a missing one. Its errors have the class ConfigInvalid.
func NewOwners(entries []string) (Owners, error) {
	var owners Owners
	for i, entry := range entries {
		o, err := parseOwner(entry)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "owners, entry %d: %w: want //depot/path/... address", i+1, err)
		}
		owners = append(owners, o)
	}
	return owners, nil
}

func parseOwner(entry string) (o owner, err error) {
	path, rest, _ := strings.Cut(strings.TrimSpace(entry), " ")
	if unquoted, isQuoted := strings.CutPrefix(strings.TrimSpace(entry), `"`); isQuoted {
		if path, rest, isQuoted = strings.Cut(unquoted, `"`); !isQuoted {
			return o, errors.New("the quote before the path is not closed")
		}
	}
	if o.path, err = compileWildcards(path); err != nil {
		return o, err
	}
	for field := range strings.FieldsSeq(rest) {
		address, err := review.ParseAddress(field)
		if err != nil {
			return o, err
		}
		o.addresses = append(o.addresses, address)
	}
	if len(o.addresses) == 0 {
		return o, errors.New("there is no address after the path")
	}
	return o, nil
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

// Of returns the owners of the files, in the order of the entries.
func (o Owners) Of(files []review.File) []review.Recipient {
	var owners []review.Recipient
	for _, entry := range o {
		if !slices.ContainsFunc(files, func(f review.File) bool { return entry.path.MatchString(f.DepotPath) }) {
			continue
		}
		for _, address := range entry.addresses {
			owners = append(owners, review.Recipient{Address: address, Role: review.RoleOwner})
		}
	}
	return owners
}
