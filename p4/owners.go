package p4

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
			members, isWhole, err := x.members(ctx, group)
			if err := x.orGap(review.GapOwners, err); err != nil {
				return err
			}
			if !isWhole && !slices.Contains(x.Gaps, review.GapOwners) {
				x.Gaps = append(x.Gaps, review.GapOwners)
			}
			for _, m := range members {
				x.addRecipient(m.Fields["User"], m.Fields["Email"], review.RoleOwner)
			}
		}
	}
	return nil
}

// Limits of a group that owns paths: groups within it, and members.
const (
	maxSubgroups = 20
	maxMembers   = 200
)

// members returns the p4 users records of a group's members, and of the groups in it.
// isWhole is false if the group has none, or more than the limits.
func (x *fetch) members(ctx context.Context, group string) (members []command.Record, isWhole bool, err error) {
	groups, users := []string{group}, []string(nil)
	for i := 0; i < min(len(groups), maxSubgroups); i++ {
		records, err := x.Stats(ctx, command.Cmd{Name: "group", Flags: []string{"-o"}, Operands: groups[i : i+1]})
		if err != nil {
			return nil, false, err
		}
		for _, rec := range records {
			for n := range numbered(rec.Fields, "Users") {
				users = append(users, rec.Fields[fmt.Sprint("Users", n)])
			}
			for n := range numbered(rec.Fields, "Subgroups") {
				if sub := rec.Fields[fmt.Sprint("Subgroups", n)]; isUser(sub) && !slices.Contains(groups, sub) {
					groups = append(groups, sub)
				}
			}
		}
	}
	users = slices.DeleteFunc(users, func(user string) bool { return !isUser(user) })
	if len(users) == 0 {
		return nil, false, nil
	}
	members, err = x.Stats(ctx, command.Cmd{Name: "users", Operands: users[:min(len(users), maxMembers)]})
	return members, len(members) > 0 && len(groups) <= maxSubgroups && len(users) <= maxMembers, err
}
