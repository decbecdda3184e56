package p4

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

func TestRecipients(t *testing.T) {
	t.Parallel()
	author := func(user, address string) review.Recipient {
		return review.Recipient{User: user, Address: address, Role: review.RoleAuthor}
	}
	subscriber := func(user, address string) review.Recipient {
		return review.Recipient{User: user, Address: address, Role: review.RoleSubscriber}
	}
	reviewer := func(user, email string) []byte { return stat("user", user, "email", email, "name", "A Name") }
	cases := map[string]struct {
		author     string
		users      [][]byte
		reviews    [][]byte
		want       []review.Recipient
		unresolved []string
	}{
		"the author comes first": {
			"ann", [][]byte{stat("User", "ann", "Email", "ann@example.com")}, [][]byte{reviewer("bob", "bob@example.com")},
			[]review.Recipient{author("ann", "ann@example.com"), subscriber("bob", "bob@example.com")}, nil,
		},
		"no user and no address twice": {
			"ann", [][]byte{stat("User", "ann", "Email", "Ann@Example.com")},
			[][]byte{reviewer("ann", "ann@example.com"), reviewer("team", "ANN@example.com"), reviewer("bob", "bob@example.com"), reviewer("bob2", "BOB@example.com")},
			[]review.Recipient{author("ann", "Ann@Example.com"), subscriber("bob", "bob@example.com")}, nil,
		},
		"a name around the address is dropped": {
			"ann", [][]byte{stat("User", "ann", "Email", "Ann A. <ann@example.com>")}, nil,
			[]review.Recipient{author("ann", "ann@example.com")}, nil,
		},
		"an author the server does not know": {
			"ann", [][]byte{message(2, 17, "ann - no such user(s).\n")}, [][]byte{reviewer("bob", "bob@example.com")},
			[]review.Recipient{subscriber("bob", "bob@example.com")}, []string{"ann"},
		},
		"addresses that are not valid": {
			"ann", [][]byte{stat("User", "ann", "Email", "")},
			[][]byte{reviewer("bob", "bob"), reviewer("carl", "c@example.com\r\nBcc: x@example.com"), reviewer("dora", "a@example.com, b@example.com")},
			nil, []string{"ann", "bob", "carl", "dora"},
		},
		"another user than the author": {
			"ann", [][]byte{stat("User", "anna", "Email", "anna@example.com"), stat("User", "Ann", "Email", "big@example.com")}, nil, nil, []string{"ann"},
		},
		"a name that would be an option":      {"-a", nil, nil, nil, []string{"-a"}},
		"a name that would list all users":    {"*", nil, nil, nil, []string{"*"}},
		"a changelist without a user":         {"", nil, nil, nil, nil},
		"a name that is not UTF-8 is decoded": {"j\xf6rg", [][]byte{stat("User", "j\xf6rg", "Email", "j@example.com")}, nil, []review.Recipient{author("jörg", "j@example.com")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.describes(12, []string{"user", c.author}, rev{path: "//depot/gone", rev: 2, action: "delete"})
			f.reply("users "+c.author, c.users...)
			f.reply("reviews -c 12", c.reviews...)
			change, err := f.fetch(12)
			testkit.NoError(t, err)
			if !reflect.DeepEqual(change.Recipients, c.want) || !reflect.DeepEqual(change.Unresolved, c.unresolved) {
				t.Errorf("recipients = %+v, unresolved = %q; want %+v, %q", change.Recipients, change.Unresolved, c.want, c.unresolved)
			}
		})
	}
}

func TestOwnersOf(t *testing.T) {
	t.Parallel()
	owners, err := NewOwners([]string{
		"//depot/... lead@corp.test",
		"//depot/.../*.sql  DBA@corp.test dba2@corp.test",
		`"//depot/my project/..." jo@corp.test`,
		"//depot/lib/*/api.go api@corp.test",
		"//depot/odd%40name... odd@corp.test",
		"//other/one.go other@corp.test",
	})
	testkit.NoError(t, err)
	for name, tc := range map[string]struct {
		paths string
		want  string
	}{
		"below a tree":             {"//depot/a.go", "lead"},
		"by suffix, deep":          {"//depot/a/b/c.sql", "lead dba dba2"},
		"the case of letters":      {"//DEPOT/a/B.SQL", "lead dba dba2"},
		"a path with blanks":       {"//depot/my project/x", "lead jo"},
		"a star ends at a slash":   {"//depot/lib/x/y/api.go", "lead"},
		"a star":                   {"//depot/lib/x/api.go", "lead api"},
		"an encoded character":     {"//depot/odd@name/x", "lead odd"},
		"one file":                 {"//other/one.go", "other"},
		"a dot is a dot":           {"//other/onexgo", ""},
		"not a longer name":        {"//other/one.go.orig", ""},
		"a line break in the name": {"//depot/a\nb.sql", "lead"},
		"no owner":                 {"//elsewhere/x", ""},
		"several files, each once": {"//depot/a.sql|//depot/b.sql|//other/one.go", "lead other"},
		"no files":                 {"", ""},
	} {
		var files []review.File
		for path := range strings.SplitSeq(tc.paths, "|") {
			files = append(files, review.File{DepotPath: path})
		}
		var got []string
		for _, r := range owners.Of(files) {
			if r.Role != review.RoleOwner {
				t.Errorf("%s: role %s", name, r.Role)
			}
			got = append(got, strings.TrimSuffix(r.Address, "@corp.test"))
		}
		if !slices.Equal(got, strings.Fields(tc.want)) {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

func TestNewOwnersRefuses(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"an empty entry":         "",
		"no address":             "//depot/...",
		"a local path":           "depot/... a@corp.test",
		"a revision":             "//depot/a@7 a@corp.test",
		"a user name":            "//depot/... alice",
		"half a quote":           `"//depot/a b/... a@corp.test`,
		"addresses with a comma": "//depot/... a@corp.test,b@corp.test",
	} {
		if _, err := NewOwners([]string{"//depot/... a@corp.test", entry}); failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%s: %v, want ConfigInvalid", name, err)
		}
	}
}
