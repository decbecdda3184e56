package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// Known ways around allow lists. None may pass, under either rule for comparing letters.
func TestAllowListBypasses(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CRITICIZER_P4_ALLOWED_PATHS":   "//depot/projA/..., //stream/main/..., //depot/one.c",
		"CRITICIZER_P4_EMBARGOED_PATHS": "//depot/projA/secret/..., //depot/projA/key.pem, //depot/projA/Stra\u00dfe/...",
		"CRITICIZER_CONFIG":             emptyFile(t),
	}
	for path, reason := range map[string]string{
		"//depot/projAB/x":                   "outside",
		"//depot/projA":                      "outside",
		"//depot/projA.bak/x":                "outside",
		"//depot/one.c/x":                    "outside",
		"//depot/one.cc":                     "outside",
		"//stream/main-dev/x":                "outside",
		"//stream/dev/x":                     "outside",
		"//spec/projA/x":                     "outside",
		"//unload/projA/x":                   "outside",
		"//Depot/projA/x":                    "outside", // on a server where case counts
		"//depot/PROJA/x":                    "outside",
		"//depot/projA/SECRET/x":             "embargoed", // on a server where it does not
		"//depot/projA/\u017fecret/x":        "embargoed", // a long s, which folds to s
		"//depot/projA/\u212aey.pem":         "embargoed", // the sign of Kelvin, which folds to k
		"//depot/projA/key.pem/x":            "embargoed", // embargoed without /... although it is a tree
		"//depot/projA/KEY.PEM/deep/x":       "embargoed",
		"//depot/projA/Key.Pem":              "embargoed",
		"//depot/projA/secret/deep/x":        "embargoed",
		"//depot/projA/../projB/x":           "relative component",
		"//depot/projA/..":                   "relative component",
		`//depot/projA/..\..\projB\x`:        "relative component", // on a server whose disk has \ for /
		`//depot/projA/a\.\x`:                "relative component",
		`//depot/projA/\..`:                  "relative component",
		"//depot/projA/../projA/secret/x":    "relative component",
		"//depot/./projA/x":                  "relative component",
		"//./depot/projA/x":                  "relative component",
		"//../depot/projA/x":                 "relative component",
		"//":                                 "empty",
		"//depot":                            "outside",
		"//depot/":                           "empty",
		"////depot/projA/x":                  "empty",
		"//depot//projA/x":                   "empty",
		"//depot/projA/./x":                  "relative component",
		"//depot/projA//x":                   "empty",
		"//depot/projA/":                     "empty",
		"///depot/projA/x":                   "empty",
		"/depot/projA/x":                     "does not begin with //",
		`\\depot\projA\x`:                    "does not begin with //",
		" //depot/projA/x":                   "does not begin with //",
		"depot/projA/x":                      "does not begin with //",
		"-//depot/projA/x":                   "does not begin with //",
		"+//depot/projA/x":                   "does not begin with //",
		"\"//depot/projA/x\"":                "does not begin with //",
		"":                                   "does not begin with //",
		"//depot/projA/...":                  "wildcard",
		"//depot/projA/*":                    "wildcard",
		"//...":                              "wildcard",
		"//depot/.../internal/secret/x":      "wildcard",
		"//depot/projA/%%1":                  "% that is not",
		"//depot/projA/x...":                 "wildcard",
		"//depot/projA/....":                 "wildcard",
		"//depot/projA...":                   "wildcard",
		"//depot/projA/x*y":                  "wildcard",
		"//depot/projA/%25%32%65/x":          "% that is not", // escapes in escapes
		"//depot/projA/%2":                   "% that is not",
		"//depot/projA/%2Fx":                 "% that is not",
		"//depot/projA/%u002e":               "% that is not",
		"//depot/projA/x#1":                  "revision",
		"//depot/projA/x#head":               "revision",
		"//depot/projA/x@4711":               "revision",
		"//depot/projA/x@=4711":              "revision",
		"//depot/projA/x@label":              "revision",
		"//depot/projA/x#1,#3":               "revision",
		"//depot/projA/%2e%2e/x":             "% that is not",
		"//depot/projA/%2E%2E/projB/x":       "% that is not",
		"//depot/projA%2f..%2fprojB/x":       "% that is not",
		"//depot/projA/%5c..%5cx":            "% that is not",
		"//depot/projA/%2a":                  "% that is not", // p4 writes %2A
		"//depot/projA/100%":                 "% that is not",
		"//depot/projA/x%00":                 "% that is not",
		"//depot/projA/x\x00":                "control character",
		"//depot/projA/x\n//depot/projB/y":   "control character",
		"//depot/projA/x\r":                  "control character",
		"//depot/projA/x\x7f":                "control character",
		"//depot\u2215projA/x":               "outside", // a slash that is none
		"//depot/proj\u0410/x":               "outside", // a Cyrillic A
		"//\u200bdepot/projA/x":              "outside",
		"//depot/projA\u00a0/x":              "outside",
		"//depot/\uff50\uff52\uff4f\uff4aA/": "empty",
	} {
		a := say(t, env, "allowlist", "check", "--json", "--", path)
		var got []struct {
			Allowed bool
			Why     string
		}
		if err := json.Unmarshal([]byte(a.out), &got); err != nil || a.status != 1 || len(got) != 1 || got[0].Allowed || !strings.Contains(got[0].Why, reason) {
			t.Errorf("check of %q: %+v; want a denial because of %q", path, a, reason)
		}
	}
	long := "//depot/projB/" + strings.Repeat("x/", 1<<16)
	if a := say(t, env, "allowlist", "check", "--", long+"x"); a.status != 1 {
		t.Errorf("check of a path of %d bytes: status %d", len(long), a.status)
	}
	for _, path := range []string{
		"//depot/projA/x", "//depot/projA/deep/er/x", "//depot/one.c", "//stream/main/x", "//depot/projA/secrets/x",
		"//depot/projA/a%40b", "//depot/projA/a%252e%252e", "//depot/projA/two words.c", "//depot/projA/..x", "//depot/projA/%252", "//depot/projA/-x", "//depot/projA/x ", `//depot/projA/we\ird`, "//depot/projA/caf\u00e9",
	} {
		if a := say(t, env, "allowlist", "check", "--", path); a.status != 0 {
			t.Errorf("check of %q: %+v; want it allowed", path, a)
		}
	}
}

func TestAllowListCheckNeedsAllPaths(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CRITICIZER_CONFIG": writeLines(t, "p4: {allowed_paths: [//depot/a/...]}")}
	for name, tt := range map[string]struct {
		args   []string
		status int
	}{
		"all allowed":             {[]string{"//depot/a/x", "//depot/a/y"}, 0},
		"one denied":              {[]string{"//depot/a/x", "//depot/b/y"}, 1},
		"case does not count":     {[]string{"--case", "insensitive", "//DEPOT/a/x"}, 0},
		"case counts":             {[]string{"--case", "sensitive", "//DEPOT/a/x"}, 1},
		"a case rule there isn't": {[]string{"--case", "ignore", "//depot/a/x"}, 2},
		"no path":                 {nil, 2},
	} {
		if a := say(t, env, append([]string{"allowlist", "check"}, tt.args...)...); a.status != tt.status {
			t.Errorf("%s: %+v", name, a)
		}
	}
	refused := writeLines(t, "p4: {allowed_paths: [//depot/a/..., //depot/*/b]}")
	checkRefusal(t, "an entry that is refused", say(t, env, "allowlist", "check", "--config", refused, "//depot/a/x"), 1, `"//depot/*/b"`)
}

// A list is applied only for a reason, and its history is kept (security 9.1.5).
func TestAllowListIsAppliedForAReason(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CRITICIZER_DATABASE_URL": storetest.New(t).URL.Reveal(), "CRITICIZER_CONFIG": emptyFile(t),
		"CRITICIZER_P4_ALLOWED_PATHS": "//depot/a/...", "CRITICIZER_P4_EMBARGOED_PATHS": "//depot/a/x/...",
	}
	shown := func(command string, v any) {
		t.Helper()
		if got := say(t, env, "allowlist", command, "--json"); got.status != 0 || json.Unmarshal([]byte(got.out), v) != nil {
			t.Fatalf("%s: %+v", command, got)
		}
	}
	missing := func() []string {
		t.Helper()
		var state struct {
			NotApplied []string `json:"not_applied"`
		}
		shown("show", &state)
		return state.NotApplied
	}
	apply := func(reason string) {
		t.Helper()
		if got := say(t, env, "allowlist", "apply", "--reason", reason); got.status != 0 {
			t.Fatalf("apply for %s: %+v", reason, got)
		}
	}
	checkRefusal(t, "no reason", say(t, env, "allowlist", "apply"), 2, `"reason" not set`)
	if got := missing(); !slices.Equal(got, []string{"+allow //depot/a/...", "+embargo //depot/a/x/..."}) {
		t.Errorf("before the first version, %q are not in force", got)
	}
	apply("TICKET-7")
	if got := missing(); len(got) != 0 {
		t.Errorf("after apply, %q are not in force", got)
	}
	apply("again")
	env["CRITICIZER_P4_ALLOWED_PATHS"] = "//depot/b/..."
	apply("TICKET-8")
	var versions []store.AllowListVersion
	shown("history", &versions)
	if len(versions) != 2 || versions[0].Reason != "TICKET-7" || versions[1].Reason != "TICKET-8" {
		t.Fatalf("the history is %+v, want a version for each change", versions)
	}
	if got := versions[1].Changes(versions[0].AllowList); !slices.Contains(got, "-allow //depot/a/...") || !slices.Contains(got, "+allow //depot/b/...") {
		t.Errorf("the second version changed %q", got)
	}
}

func emptyFile(t *testing.T) string { return writeLines(t) }

func writeLines(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	testkit.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	return file
}
