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
		"nobody":                   {"//elsewhere/x", ""},
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
	for text, want := range map[string]string{
		"":                                    "does not begin with //",
		"//depot/...":                         "no address",
		"depot/... a@corp.test":               "does not begin with //",
		"//depot/a@7 a@corp.test":             "has a revision",
		"//depot/... alice":                   "not an address",
		`"//depot/a b/... a@corp.test`:        "has no end",
		"//depot/... a@corp.test,b@corp.test": "not an address",
	} {
		_, err := NewOwners([]string{"//depot/... a@corp.test", text})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "entry 2") || failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
