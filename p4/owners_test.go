package p4

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
