package p4

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// readRecipients sets the author and, unless authorOnly is set, the users who
// subscribed to files of the changelist in the Reviews field of p4 user: the author
// first, no user twice. Users without a usable address are unresolved. It adds the owners
// of the files. What the account may not read is missing, and a gap of the change.
func (x *fetch) readRecipients(ctx context.Context, authorOnly bool) error {
	address, err := x.addressOf(ctx, x.user)
	if err := x.orGap(review.GapAuthor, err); err != nil {
		return err
	}
	if address == "" && x.isNamed {
		address = x.user // may be one
	}
	x.addRecipient(x.Change.User, address, review.RoleAuthor)
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
	return x.addOwners(ctx)
}

// authorOnly returns a change with the author alone, who learns that the change could not be
// read. An attempt that ran out of time has a few seconds for this.
func (x *fetch) authorOnly(ctx context.Context) (c review.Change) {
	if x.Change.User == "" || errors.Is(ctx.Err(), context.Canceled) {
		return c
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	x.Recipients, x.Unresolved = nil, nil
	x.nameAuthor()
	if x.readRecipients(ctx, true) == nil {
		c.User, c.Recipients = x.Change.User, x.Recipients
	}
	return c
}

// An authorRule names the author of a change that a service user submits for others.
type authorRule struct {
	user string // * matches any text
	is   *regexp.Regexp
}

// parseAuthors parses entries such as "git-fusion Author: .*<(.+)>".
func parseAuthors(entries []string) (rules []authorRule, err error) {
	for i, entry := range entries {
		user, pattern, _ := strings.Cut(strings.TrimSpace(entry), " ")
		is, err := regexp.Compile("(?m)" + strings.TrimSpace(pattern))
		if err == nil && (pattern == "" || is.NumSubexp() != 1) {
			err = fmt.Errorf("%q does not have one group in parentheses", pattern)
		}
		if err != nil {
			return nil, fmt.Errorf("authors, entry %d: %w: want USER PATTERN, such as git-* Author: .*<(.+)>", i+1, err)
		}
		rules = append(rules, authorRule{user, is})
	}
	return rules, nil
}

// nameAuthor replaces a service user by the author that a rule finds in the description or
// in a job: a user, or an address.
func (x *fetch) nameAuthor() {
	for _, rule := range x.authors {
		for _, text := range append([]string{x.Description}, x.Jobs...) {
			if found := rule.is.FindStringSubmatch(text); found != nil && !x.isNamed && matchesAny([]string{rule.user}, x.Change.User) {
				x.user, x.isNamed = strings.TrimSpace(found[1]), true
				user, _, _ := strings.Cut(x.user, "@")
				x.Change.User = x.name(user)
			}
		}
	}
}

// isUser reports whether a name can be one of a user or group: * would list all users.
func isUser(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsAny(name, "* \t\r\n\x00")
}

// addressOf returns the address of a user, "" if the server does not know the user.
func (s *server) addressOf(ctx context.Context, user string) (string, error) {
	if !isUser(user) {
		return "", nil
	}
	records, err := s.users(ctx, []string{user})
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

// users returns the users of the names that exist: p4 user -o would invent the others. A
// replica may list only those who have used it, and is asked for those of the central server.
func (s *server) users(ctx context.Context, names []string) ([]command.Record, error) {
	records, err := s.Stats(ctx, command.Cmd{Name: "users", Operands: names})
	if err == nil && len(records) < len(names) && s.info.isReplica() {
		return s.Stats(ctx, command.Cmd{Name: "users", Flags: []string{"-c"}, Operands: names})
	}
	return records, err
}

// addRecipient keeps the first recipient of each user. Users who share an address all stay:
// one of them may be a bot or have opted out.
func (x *fetch) addRecipient(user, email string, role review.Role) {
	name := x.name(user)
	parsed, err := mail.ParseAddress(email)
	isSame := func(other string) bool { return x.fold(other) == x.fold(name) }
	switch {
	case slices.ContainsFunc(x.Unresolved, isSame):
	case slices.ContainsFunc(x.Recipients, func(r review.Recipient) bool { return isSame(r.User) }):
	case err == nil:
		x.Recipients = append(x.Recipients, review.Recipient{User: name, Address: parsed.Address, Role: role})
	case name != "":
		x.Unresolved = append(x.Unresolved, name)
	}
}
