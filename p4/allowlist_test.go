package p4

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// An allow list holds canonical depot paths and no broad wildcards (security 9.1.2).
func TestNewAllowListRefuses(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"an empty entry":               "",
		"a local path":                 "/depot/a/...",
		"a client-relative path":       "depot/a/...",
		"all depots":                   "//...",
		"a wildcard for depots":        "//*/a/...",
		"a wildcard inside":            "//depot/*/src/...",
		"dots inside":                  "//depot/.../src/...",
		"a prefix of names":            "//depot/projA...",
		"a positional wildcard":        "//depot/%%1/...",
		"a revision":                   "//depot/a#3",
		"a changelist":                 "//depot/a/...@12",
		"a relative component":         "//depot/../a/...",
		"one between backslashes":      `//depot/a\..\b/...`,
		"a dot component":              "//depot/./a/...",
		"an empty component":           "//depot//a/...",
		"a trailing slash":             "//depot/a/",
		"a raw percent sign":           "//depot/100%/...",
		"an encoding p4 does not use":  "//depot/%2e%2e/...",
		"half an encoding":             "//depot/a%4",
		"a raw one after an encoded":   "//depot/a%40b/100%/...",
		"a control character":          "//depot/a\n/...",
		"NUL":                          "//depot/a\x00",
		"a depot alone":                "//depot",
		"an exclusion":                 "-//depot/a/...",
		"a blank before the path":      " //depot/a/...",
		"two slashes before the dots":  "//depot/a//...",
		"nothing between the slashes":  "///...",
		"an exclusion that looks fine": "//-/../...",
	} {
		if _, err := NewAllowList([]string{entry}, nil); err == nil {
			t.Errorf("%s is accepted: %q", name, entry)
		}
		if _, err := NewAllowList([]string{"//depot/..."}, []string{entry}); err == nil {
			t.Errorf("%s is accepted as an embargo: %q", name, entry)
		}
	}
	if _, err := NewAllowList(nil, nil); err == nil {
		t.Error("an empty allow list is accepted")
	}
}

func TestAllowListCheck(t *testing.T) {
	t.Parallel()
	list, err := NewAllowList(
		[]string{"//depot/projA/...", "//depot/libs/one.c", "//depot/a%40b/...", "//Depot/Caf\xe9/...", "//depot/zoo/..."},
		[]string{"//depot/projA/secret/...", "//depot/projA/key.pem"},
	)
	testkit.NoError(t, err)
	cases := []struct {
		path        string
		exact       bool // allowed where case counts
		folded      bool // allowed where it does not
		isEmbargoed bool
	}{
		{"//depot/projA/x.c", true, true, false},
		{"//depot/projA/deep/er/x.c", true, true, false},
		{"//depot/projA", false, false, false},
		{"//depot/projAB/x", false, false, false},
		{"//depot/libs/one.c", true, true, false},
		{"//depot/libs/one.cc", false, false, false},
		{"//depot/libs/one.c/x", false, false, false},
		{"//DEPOT/proja/X.c", false, true, false},
		{"//depot/Zoo/x", false, true, false},
		{"//depot/projA/secret/x", false, false, true},
		{"//depot/projA/secrets", true, true, false},
		{"//depot/projA/SECRET/x", true, false, false},
		{"//depot/projA/Key.PEM", true, false, false},
		{"//depot/projA/../internal/secret/x", false, false, false},
		{"//depot/projA/./x", false, false, false},
		{"//depot/projA//x", false, false, false},
		{"//depot/projA/", false, false, false},
		{"//depot/projA/...", false, false, false},
		{"//depot/projA/*", false, false, false},
		{"//depot/projA/x#1", false, false, false},
		{"//depot/projA/x@1", false, false, false},
		{"//depot/projA/x\n//depot/other/y", false, false, false},
		{"//depot/a%40b/x", true, true, false},
		{"//depot/a@b/x", false, false, false},
		{"//depot/projA/%2e%2e/x", false, false, false},
		{"//depot/projA/%0 x", false, false, false},
		{"//depot/projA/%40/100%", false, false, false},
		// Permissions fold ASCII letters only, byte by byte.
		{"//depot/caf\xe9/x", false, true, false},
		{"//depot/caf\xc9/x", false, false, false},
		{"//depot/caf\xff/x", false, false, false},
		{"projA/x", false, false, false},
		{"", false, false, false},
	}
	for _, c := range cases {
		if err := list.Check(c.path, caseSensitive); (err == nil) != c.exact || errors.Is(err, errEmbargoed) != c.isEmbargoed {
			t.Errorf("%q: %v; want allowed %t, embargoed %t", c.path, err, c.exact, c.isEmbargoed)
		}
		if err := list.Check(c.path, caseInsensitive); (err == nil) != c.folded {
			t.Errorf("%q with folding: %v; want allowed %t", c.path, err, c.folded)
		}
		// Of hybrid and unknown servers, both ways must allow.
		for _, handling := range []string{"hybrid", ""} {
			if err := list.Check(c.path, handling); (err == nil) != (c.exact && c.folded) {
				t.Errorf("%q with case handling %q: %v; want allowed %t", c.path, handling, err, c.exact && c.folded)
			}
		}
	}
}

// An embargo also covers the tree of its name, while a permission for a file covers that
// file only. A server in unicode mode folds more than ASCII. One that is not does not
// report the encoding of a path: what may be embargoed in some encoding is denied, and
// nothing else.
func TestEmbargoes(t *testing.T) {
	t.Parallel()
	list, err := NewAllowList([]string{"//depot/...", "//other/file"}, []string{
		"//depot/f\u00fcr/keys/...", "//depot/a/\u79d8\u5bc6.c", "//depot/ascii/...", "//depot/Stra\u00dfe/\u00c9t\u00e9/...", "//depot/task/...", "//depot/a/secret",
	})
	testkit.NoError(t, err)
	for path, want := range map[string]struct{ exact, folded error }{
		"//depot/f\u00fcr/keys/x":             {errEmbargoed, errEmbargoed},
		"//depot/fu\u0308r/keys/x":            {errEmbargoed, errEmbargoed}, // decomposed, as macOS writes it
		"//depot/f\xfcr/keys/x":               {errUndecided, errUndecided}, // Latin-1
		"//depot/f\x81r/keys/x":               {errUndecided, errUndecided}, // code page 437
		"//depot/F\xdcR/KEYS/x":               {nil, errUndecided},
		"//depot/a/\x94\xe9\x96\xa7.c":        {errUndecided, errUndecided}, // Shift-JIS
		"//depot/a/\x94\xe9\x96\xa7.c/deep":   {errUndecided, errUndecided},
		"//depot/f\xfcr/other/x":              {nil, nil},
		"//depot/fur/keys/\xfc":               {nil, nil},
		"//depot/f\xfcr":                      {nil, nil},
		"//depot/ascii/\xfc":                  {errEmbargoed, errEmbargoed},
		"//depot/caf\xe9.c":                   {nil, nil},
		"//depot/stra\u00dfe/\u00e9T\u00c9/x": {nil, errEmbargoed},
		"//depot/ta\u017f\u212a/x":            {nil, errEmbargoed}, // a long s, and the kelvin sign
		"//depot/strasse/ete/x":               {nil, nil},
		"//depot/a/secret":                    {errEmbargoed, errEmbargoed},
		"//depot/a/secret/x":                  {errEmbargoed, errEmbargoed},
		"//depot/a/SECRET/deep/x":             {nil, errEmbargoed},
		"//depot/a/secrets":                   {nil, nil},
		"//depot/a/secret.txt":                {nil, nil},
		"//other/file":                        {nil, nil},
		"//other/file/x":                      {errNotListed, errNotListed},
	} {
		if got := list.Check(path, caseSensitive); !errors.Is(got, want.exact) {
			t.Errorf("%q: %v, want %v", path, got, want.exact)
		}
		if got := list.Check(path, caseInsensitive); !errors.Is(got, want.folded) {
			t.Errorf("%q with folding: %v, want %v", path, got, want.folded)
		}
	}
}

func FuzzAllowList(f *testing.F) {
	f.Add("//depot/projA/...", "//depot/projA/secret/...", "//depot/projA/secret/x", true)
	f.Add("//depot/a%40b/f", "//depot/x/...", "//depot/a%40b/f", false)
	f.Fuzz(func(t *testing.T, allowed, embargoed, path string, fold bool) {
		list, err := NewAllowList([]string{allowed}, []string{embargoed})
		handling := map[bool]string{true: caseInsensitive, false: caseSensitive}[fold]
		if err != nil || list.Check(path, handling) != nil {
			return
		}
		lower := func(s string) string {
			if fold {
				return foldASCII(s)
			}
			return s
		}
		tree, isTree := strings.CutSuffix(lower(allowed), "...")
		if isTree && !strings.HasPrefix(lower(path), tree) || !isTree && lower(path) != tree {
			t.Errorf("%q is allowed by %q", path, allowed)
		}
		if out, isTree := strings.CutSuffix(lower(embargoed), "..."); isTree && strings.HasPrefix(lower(path), out) || lower(path) == out {
			t.Errorf("%q is allowed despite the embargo on %q", path, embargoed)
		}
		if parts := strings.Split(path[2:], "/"); slices.Contains(parts, "..") || slices.Contains(parts, "") || strings.ContainsAny(path, "*@#\n\x00") {
			t.Errorf("%q is allowed and not canonical", path)
		}
	})
}
