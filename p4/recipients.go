package p4

import (
	"context"
	"net/mail"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// recipients returns the author and, unless authorOnly is set, the users who
// subscribed to files of the changelist in the Reviews field of p4 user: the author
// first, no user or address twice. Users without a usable address are unresolved.
//
// What the account may not read is missing, and a gap of the change.
func (x *fetch) recipients(ctx context.Context, authorOnly bool) (all []review.Recipient, unresolved []string, err error) {
	list := recipientList{fold: x.fold}
	address, err := x.addressOf(ctx, x.user)
	if err = x.orGap(review.GapAuthor, err); err != nil {
		return nil, nil, err
	}
	list.add(x.user, address, review.RoleAuthor)
	if authorOnly {
		return list.all, list.unresolved, nil
	}
	records, err := x.stats(ctx, command{name: "reviews", flags: []string{"-c"}, operands: []string{x.Number.String()}})
	if err = x.orGap(review.GapSubscribers, err); err != nil {
		return nil, nil, err
	}
	for _, rec := range records {
		list.add(rec.fields["user"], rec.fields["email"], review.RoleSubscriber)
	}
	return list.all, list.unresolved, nil
}

// addressOf returns the address of a user, "" if the server does not know the user.
// It runs p4 users, because p4 user -o invents a user who does not exist.
func (s *server) addressOf(ctx context.Context, user string) (string, error) {
	if user == "" || user[0] == '-' || strings.ContainsAny(user, "* \t\r\n\x00") {
		return "", nil // not a user name; * would list all users
	}
	records, err := s.stats(ctx, command{name: "users", operands: []string{user}})
	if err != nil {
		return "", err
	}
	for _, rec := range records {
		if s.fold(rec.fields["User"]) == s.fold(user) {
			return rec.fields["Email"], nil
		}
	}
	return "", nil
}

// A recipientList keeps the first recipient of each user and of each address.
type recipientList struct {
	fold       func(string) string
	all        []review.Recipient
	unresolved []string
}

func (l *recipientList) add(user, email string, role review.Role) {
	name, _ := legacyToUTF8(user)
	parsed, err := mail.ParseAddress(email)
	isSame := func(other string) bool { return l.fold(other) == l.fold(name) }
	switch {
	case slices.ContainsFunc(l.unresolved, isSame):
	case slices.ContainsFunc(l.all, func(r review.Recipient) bool {
		return isSame(r.User) || err == nil && strings.EqualFold(r.Address, parsed.Address)
	}):
	case err == nil:
		l.all = append(l.all, review.Recipient{User: name, Address: parsed.Address, Role: role})
	case name != "":
		l.unresolved = append(l.unresolved, name)
	}
}
