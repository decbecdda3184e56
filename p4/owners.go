package p4

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// An owner is notified of changes to paths.
type owner struct {
	path      *regexp.Regexp
	addresses []string
	groups    []string // of p4
}

// groupPrefix begins the name of a group in an entry.
const groupPrefix = "group:"

// parseOwners parses entries such as "//depot/db/....sql dba@example.com group:dba": a path
// with p4's wildcards, in double quotes if it has blanks, and addresses and groups. The case
// of letters in paths is ignored: an unneeded mail does less harm than a missing one.
func parseOwners(entries []string) (owners []owner, err error) {
	for i, entry := range entries {
		o, err := parseOwner(entry)
		if err != nil {
			return nil, fmt.Errorf("owners, entry %d: %w: want //depot/path/... address group:NAME", i+1, err)
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
	if o.path, err = compileWildcards(norm.NFC.String(path)); err != nil {
		return o, err
	}
	for field := range strings.FieldsSeq(rest) {
		if group, ok := strings.CutPrefix(field, groupPrefix); ok && isUser(group) {
			o.groups = append(o.groups, group)
			continue
		}
		address, err := review.ParseAddress(field)
		if err != nil {
			return o, err
		}
		o.addresses = append(o.addresses, address)
	}
	if len(o.addresses)+len(o.groups) == 0 {
		return o, errors.New("there is no address or group after the path")
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
	case strings.ContainsFunc(path, unicode.IsControl):
		return nil, errors.New("the path has a control character")
	case strings.ContainsAny(path, "@#"):
		return nil, errors.New("the path has a revision: write %40 for @ and %23 for #")
	}
	return regexp.Compile(`(?is)^` + wildcards.Replace(regexp.QuoteMeta(path)) + `$`)
}

// wildcards translates the wildcards and the encoded characters of a quoted path.
var wildcards = strings.NewReplacer(`\.\.\.`, `.*`, `\*`, `[^/]*`, "%40", "@", "%23", "#", "%25", "%", "%2A", `\*`)

// addOwners adds the owners of the files, in the order of the configuration.
func (x *fetch) addOwners(ctx context.Context) error {
	for _, o := range x.owners {
		if !slices.ContainsFunc(x.Files, func(f review.File) bool { return o.path.MatchString(norm.NFC.String(f.DepotPath)) }) {
			continue
		}
		for _, address := range o.addresses {
			x.Recipients = append(x.Recipients, review.Recipient{Address: address, Role: review.RoleOwner})
		}
		for _, group := range o.groups {
			found, err := x.membersOf(ctx, group)
			if err := x.orGap(review.GapOwners, err); err != nil {
				return err
			}
			if !found.isWhole && !slices.Contains(x.Gaps, review.GapOwners) {
				x.Gaps = append(x.Gaps, review.GapOwners)
			}
			for _, m := range found.users {
				x.addRecipient(m.Fields["User"], m.Fields["Email"], review.RoleOwner)
			}
		}
	}
	return nil
}

// Limits of a group that owns paths: groups within it, members, and how long the members are
// cached. A former member is notified for no longer than that.
const (
	maxSubgroups = 20
	maxMembers   = 200
	groupLife    = time.Minute
)

// members are the users of a group and of the groups in it.
type members struct {
	users   []command.Record // of p4 users
	isWhole bool             // there are users, and no more than the limits
	asked   time.Time
}

// membersOf returns the members of a group, from the cache or from the server.
func (x *fetch) membersOf(ctx context.Context, group string) (members, error) {
	if known, ok := x.groups.Load(group); ok && time.Since(known.(members).asked) < groupLife {
		return known.(members), nil
	}
	found := members{asked: time.Now()}
	groups, users := []string{group}, []string(nil)
	for i := 0; i < min(len(groups), maxSubgroups); i++ {
		records, err := x.Stats(ctx, command.Cmd{Name: "group", Flags: []string{"-o"}, Operands: groups[i : i+1]})
		if err != nil {
			return members{}, err
		}
		for _, rec := range records {
			for i := range numbered(rec.Fields, "Users") {
				users = append(users, rec.Fields["Users"+i])
			}
			for i := range numbered(rec.Fields, "Subgroups") {
				if sub := rec.Fields["Subgroups"+i]; isUser(sub) && !slices.Contains(groups, sub) {
					groups = append(groups, sub)
				}
			}
		}
	}
	users = slices.DeleteFunc(users, func(user string) bool { return !isUser(user) })
	if len(users) > 0 {
		var err error
		found.users, err = x.server.users(ctx, users[:min(len(users), maxMembers)])
		if err != nil {
			return members{}, err
		}
	}
	found.isWhole = len(found.users) > 0 && len(groups) <= maxSubgroups && len(users) <= maxMembers
	x.groups.Store(group, found)
	return found, nil
}
