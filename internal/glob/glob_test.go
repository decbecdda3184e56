package glob

import (
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern, path string
		want          bool
	}{
		"a name at any depth":                       {"*.go", "//depot/a/b/main.go", true},
		"a name is not a part of another":           {"go.sum", "//depot/a/xgo.sum", false},
		"a directory at any depth":                  {"vendor/**", "//depot/a/vendor/b/c.go", true},
		"a directory that is the depot":             {"vendor/**", "//vendor/b/c.go", true},
		"a directory of a longer name":              {"vendor/**", "//depot/vendors/c.go", false},
		"a file of a directory's name":              {"vendor/**", "//depot/a/vendor.go", false},
		"a whole path":                              {"//depot/main/**", "//depot/main/a/b.c", true},
		"a whole path of another branch":            {"//depot/main/**", "//depot/rel/main/b.c", false},
		"a star stays in its directory":             {"//depot/*/b.c", "//depot/x/y/b.c", false},
		"two stars stand for no directory too":      {"//depot/**/b.c", "//depot/b.c", true},
		"alternatives":                              {"*.{h,cpp}", "//depot/a.CPP", true},
		"letters in either case":                    {"//Depot/Third_Party/**", "//depot/THIRD_party/a.c", true},
		"letters of another script in either case":  {"ÄRGER/**", "//depot/ärger/a.c", true},
		"a letter that looks like one of ASCII":     {"third_party/*.lock", "//depot/th\u0130rd_party/a.loc\u212a", false},
		"a character of the path is not a wildcard": {"a.c", "//depot/a*c", false},
		"brackets of the path are no wildcard":      {"*.c", "//depot/a[1].c", true},
		"a path that holds what p4 encodes":         {"*.c", "//depot/50% @home#*.c", true},
		"a pattern with directories and a depth":    {"src/**/test/*.py", "//depot/x/src/a/b/test/t.py", true},
		"a pattern with directories out of order":   {"src/**/test/*.py", "//depot/x/test/src/t.py", false},
	} {
		list, err := ParseList([]string{"nothing.else", tt.pattern})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, ok := list.Match(tt.path)
		if ok != tt.want || ok && got != tt.pattern {
			t.Errorf("%s: %s matches %s: %t by %q, want %t", name, tt.pattern, tt.path, ok, got, tt.want)
		}
	}
}

func TestFirstMatchCounts(t *testing.T) {
	t.Parallel()
	list := MustParse("*.h", "*.go", "main.*", "//depot/**")
	if got, _ := list.Match("//depot/main.go"); got != "*.go" {
		t.Errorf("matched %q, want the first that matches", got)
	}
	if got, ok := (List{{}}).Match("//depot/main.go"); ok {
		t.Errorf("the zero pattern matched as %q", got)
	}
}

func TestParseListRejects(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", " ", "//depot/main/...", "/depot/main/**", "*.{h,cpp", "//depot/[a-/b.txt"} {
		if _, err := ParseList([]string{"*.go", pattern}); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
}
