package p4

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

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
		"no user twice, but all users of an address": { // one of them may have opted out
			"ann", [][]byte{stat("User", "ann", "Email", "Ann@Example.com")},
			[][]byte{reviewer("ann", "ann@example.com"), reviewer("svc-bob", "bob@example.com"), reviewer("bob", "BOB@example.com"), reviewer("bob", "bob@example.com")},
			[]review.Recipient{author("ann", "Ann@Example.com"), subscriber("svc-bob", "bob@example.com"), subscriber("bob", "BOB@example.com")}, nil,
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

// The author of a change that cannot be read is known if Perforce has named one.
func TestAuthorOfAChangeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for key, failed := range map[string]reply{
		"print":         {Out: message(3, 33, "Transfer of librarian file 'x' failed.\n"), Exit: 1},
		"reviews -c 12": {Exit: 1},
		"describe 12":   {Exit: 1},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.describes(12, []string{"user", "ann"}, rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"})
			f.reply("users ann", stat("User", "ann", "Email", "ann@example.com"))
			f.replies[key] = failed
			change, err := f.fetch(12)
			if known := key != "describe 12"; err == nil || change.Files != nil || known != (len(change.Recipients) == 1 && change.Recipients[0].Address == "ann@example.com") {
				t.Errorf("read %+v, %v", change, err)
			}
		})
	}
}

// Owners are notified of changes to their paths, but not of denied changes, which others may
// not be able to read.
func TestOwners(t *testing.T) {
	t.Parallel()
	entries := []string{
		"//depot/... lead@corp.test",
		"//depot/.../*.sql  DBA@corp.test dba2@corp.test",
		`"//depot/my project/..." jo@corp.test`,
		"//depot/lib/*/api.go api@corp.test",
		"//depot/odd%40name... odd@corp.test",
		"//other/one.go other@corp.test",
		"//depot/cafe\u0301/... cafe@corp.test",
	}
	for name, tc := range map[string]struct {
		paths string // as p4 writes them
		want  string
	}{
		"below a tree":              {"//depot/a.go", "lead"},
		"by suffix, deep":           {"//depot/a/b/c.sql", "lead dba dba2"},
		"the case of letters":       {"//depot/A/B.SQL", "lead dba dba2"},
		"a path with blanks":        {"//depot/my project/x", "lead jo"},
		"a star ends at a slash":    {"//depot/lib/x/y/api.go", "lead"},
		"a star":                    {"//depot/lib/x/api.go", "lead api"},
		"an encoded character":      {"//depot/odd%40name/x", "lead odd"},
		"one file":                  {"//other/one.go", "other"},
		"a dot is a dot":            {"//other/onexgo", ""},
		"not a longer name":         {"//other/one.go.orig", ""},
		"an accent of its own":      {"//depot/caf\u00e9/x", "lead cafe"},
		"an accent in Latin-1":      {"//depot/caf\xe9/x", "lead cafe"},
		"several files, each once":  {"//depot/a.sql|//depot/b.sql|//other/one.go", "lead other"},
		"a change that may be read": {"//depot/a.go", "lead"},
		"a denied change":           {"//secret/a.go|//depot/a.go", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			var revs []rev
			for path := range strings.SplitSeq(tc.paths, "|") {
				revs = append(revs, rev{path: path, rev: 2, action: "delete"})
			}
			f.describes(12, nil, revs...)
			change, err := f.fetch(12, func(c *Config) { c.Owners, c.Allowed = entries, []string{"//depot/...", "//other/..."} })
			testkit.NoError(t, err)
			var got []string
			for _, r := range change.Recipients {
				if r.Role == review.RoleOwner {
					got = append(got, strings.TrimSuffix(r.Address, "@corp.test"))
				}
			}
			if !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

func TestEntriesOfOwnersAndAuthors(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"an empty entry":         "",
		"no address":             "//depot/...",
		"a local path":           "depot/... a@corp.test",
		"a revision":             "//depot/a@7 a@corp.test",
		"a user name":            "//depot/... alice",
		"half a quote":           `"//depot/a b/... a@corp.test`,
		"addresses with a comma": "//depot/... a@corp.test,b@corp.test",
		"a group without a name": "//depot/... group:",
		"a group with an option": "//depot/... group:-d",
	} {
		if _, err := parseOwners([]string{"//depot/... a@corp.test", entry}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, entry := range map[string]string{"no pattern": "git-*", "no group": "git-* ^Author: .*$", "two groups": "git-* (a)(b)", "half a group": "git-* (a"} {
		if _, err := parseAuthors([]string{entry}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// The members of a group and of the groups in it are owners. The server is asked for them once a
// minute.
func TestGroupsAreOwners(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"})
	f.reply("group -o dba", stat("Group", "dba", "Subgroups0", "seniors", "Subgroups1", "dba", "Users0", "bob", "Users1", "-x", "Owners0", "boss"))
	f.reply("group -o seniors", stat("Group", "seniors", "Users0", "carl", "Users1", "gone"))
	f.reply("users bob carl gone", stat("User", "bob", "Email", "bob@example.com"), stat("User", "carl", "Email", "carl"), message(2, 17, "gone - no such user(s).\n"))
	fetcher := f.fetcher(func(c *Config) { c.Owners = []string{"//depot/... group:dba", "//other/... group:none"} })
	want := []review.Recipient{{User: "ann", Address: "ann@example.com", Role: review.RoleAuthor}, {User: "bob", Address: "bob@example.com", Role: review.RoleOwner}}
	for range 2 {
		change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
		testkit.NoError(t, err)
		if !slices.Equal(change.Recipients, want) || !slices.Equal(change.Unresolved, []string{"carl"}) {
			t.Errorf("recipients %v, unresolved %v", change.Recipients, change.Unresolved)
		}
	}
	if asked := len(f.ran("group")); asked != 2 {
		t.Errorf("p4 group ran %d times for two changes, want 2", asked)
	}
	known, _ := fetcher.groups.Load("dba")
	old := known.(members)
	old.asked = old.asked.Add(-groupLife)
	fetcher.groups.Store("dba", old)
	f.reply("group -o dba", message(3, 6, "You don't have permission for this operation.\n"))
	f.write()
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
	if err != nil || !slices.Contains(change.Gaps, review.GapOwners) || len(change.Recipients) != 1 {
		t.Errorf("without permission: %+v, %v", change, err)
	}
}

// Members of a group who are not read, and a group without members, are reported.
func TestGroupsThatAreNotReadWhole(t *testing.T) {
	t.Parallel()
	file := rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"}
	dba := func(field string, first, n int) []byte {
		fields := []string{"Group", "dba", "Users0", "bob"}
		for i := range n {
			fields = append(fields, fmt.Sprint(field, first+i), fmt.Sprint("x", i+1))
		}
		return stat(fields...)
	}
	for name, tt := range map[string]struct {
		group   []byte
		owners  int
		wantGap bool
	}{
		"a group that the server does not know":    {stat("Group", "dba"), 0, true},
		"all members":                              {dba("Users", 1, maxMembers-1), 1, false},
		"more members than are read":               {dba("Users", 1, maxMembers), 1, true},
		"all subgroups":                            {dba("Subgroups", 0, maxSubgroups-1), 1, false},
		"more subgroups than are read":             {dba("Subgroups", 0, maxSubgroups), 1, true},
		"members who are not users for the server": {stat("Group", "dba", "Users0", "gone"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, file)
			f.reply("group -o dba", tt.group)
			users := "users bob"
			for i := range maxSubgroups {
				f.reply(fmt.Sprint("group -o x", i+1), stat("Group", fmt.Sprint("x", i+1)))
			}
			bob := stat("User", "bob", "Email", "bob@example.com")
			f.reply(users, bob)
			for i := range maxMembers - 1 {
				users += fmt.Sprint(" x", i+1)
			}
			f.reply(users, bob)
			f.reply("users gone", message(2, 17, "gone - no such user(s).\n"))
			fetcher := f.fetcher(func(c *Config) { c.Owners = []string{"//depot/... group:dba"} })
			change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
			testkit.NoError(t, err)
			if got := slices.Contains(change.Gaps, review.GapOwners); got != tt.wantGap || len(change.Recipients) != 1+tt.owners {
				t.Errorf("gaps %q, recipients %v; want a gap: %v, and %d owners", change.Gaps, change.Recipients, tt.wantGap, tt.owners)
			}
		})
	}
}

// A change that a service user submits has the author that its description or a job names.
func TestAuthorOfARobotsChange(t *testing.T) {
	t.Parallel()
	file := rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"}
	for name, tt := range map[string]struct {
		user, desc string
		want       review.Recipient
	}{
		"a user":                       {"git-fusion", "Mend it.\n\nAuthor: bob\n", review.Recipient{User: "bob", Address: "bob@example.com", Role: review.RoleAuthor}},
		"an address":                   {"git-fusion", "Author: Carla <carla@corp.test>\n", review.Recipient{User: "carla", Address: "carla@corp.test", Role: review.RoleAuthor}},
		"line ends of Windows":         {"git-fusion", "Mend it.\r\n\r\nAuthor: Carla <carla@corp.test>\r\n", review.Recipient{User: "carla", Address: "carla@corp.test", Role: review.RoleAuthor}},
		"a job":                        {"ci-7", "Mend it.\n", review.Recipient{User: "bob", Address: "bob@example.com", Role: review.RoleAuthor}},
		"another user's description":   {"ann", "Author: bob\n", review.Recipient{User: "ann", Address: "ann@example.com", Role: review.RoleAuthor}},
		"a description without a name": {"git-fusion", "Mend it.\n", review.Recipient{User: "git-fusion", Address: "git@example.com", Role: review.RoleAuthor}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, file)
			f.describes(12, []string{"user", tt.user, "desc", tt.desc, "job0", "BUG-7"}, file)
			f.reply("jobs -l -e Job=BUG-7", stat("Job", "BUG-7", "Description", "Requested by bob\n"))
			for user, email := range map[string]string{"bob": "bob@example.com", "ann": "ann@example.com", "git-fusion": "git@example.com"} {
				f.reply("users "+user, stat("User", user, "Email", email))
			}
			f.reply("users carla@corp.test", message(2, 17, "carla@corp.test - no such user(s).\n"))
			change, err := f.fetch(12, func(c *Config) {
				c.Authors = []string{`git-*  ^Author: (?:.*<)?([^<>\n]+)>?$`, `ci-* ^Requested by (.+)$`}
			})
			if err != nil || change.User != tt.want.User || len(change.Recipients) != 1 || change.Recipients[0] != tt.want {
				t.Errorf("user %q, recipients %v, %v; want %v", change.User, change.Recipients, err, tt.want)
			}
		})
	}
}
