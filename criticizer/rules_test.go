package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// newRulesEnvironment has a configuration with rules only.
func newRulesEnvironment(t *testing.T, rules string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site.yaml":       rules,
		"criticizer.yaml": fmt.Sprintf("llm: {rules: [%q]}\n", filepath.Join(dir, "site.yaml")),
	} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return map[string]string{"CRITICIZER_CONFIG": filepath.Join(dir, "criticizer.yaml")}
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	env := newRulesEnvironment(t, "\nname: ours\nfiles: ['//depot/ours/**']\nlook_for:\n- Our own trap.\n")
	got := say(t, env, "rules", "check", "//depot/ours/a.go", "//depot/main/a.go", "//depot/main/a.bin")
	var rows []string
	for line := range strings.Lines(got.out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	if got.status != 0 || len(rows) != 4 ||
		!strings.HasPrefix(rows[1], "ours //depot/ours/** /") || !strings.HasSuffix(rows[1], "site.yaml:2 //depot/ours/a.go") ||
		rows[2] != "go *.go shipped //depot/main/a.go" || rows[3] != "none //depot/main/a.bin" {
		t.Errorf("status %d, %s%s", got.status, got.out, got.err)
	}
}

// The rules of teams are read from the depot.
func TestRulesOfTeams(t *testing.T) {
	t.Parallel()
	for depot, want := range map[string]string{
		"//depot/src/team.yaml": `[{"path":"//depot/a.cpp","pack":"depot:team","origin":"//depot/src/team.yaml#1:1","pattern":"*.cpp"},{"path":"//depot/a.cpp","pack":"cpp","origin":"shipped","pattern":"*.{c,cc,cpp,cxx,c++,h,hh,hpp,hxx,inl,ipp,m,mm,cu,cuh}"}]`,
		"//depot/src/none.yaml": "", "//depot/src/old.c": "", "//other/team.yaml": "",
	} {
		got := say(t, newPreviewEnvironment(t, fmt.Sprintf("rules: {depot: [%q]}\n", depot)), "rules", "check", "--json", "//depot/a.cpp")
		var found, wanted []map[string]string
		_ = json.Unmarshal([]byte(got.out), &found)
		_ = json.Unmarshal([]byte(want), &wanted)
		if (got.status == 0) != (want != "") || !reflect.DeepEqual(found, wanted) {
			t.Errorf("%s: status %d, %s%s", depot, got.status, got.out, got.err)
		}
	}
}

func TestRulesList(t *testing.T) {
	t.Parallel()
	got := say(t, newRulesEnvironment(t, "name: ours\nfiles: ['*.x']\nlook_for:\n- Our own trap.\n"), "rules", "list", "--json")
	type pack struct{ Name, Origin, Text string }
	var packs []pack
	if err := json.Unmarshal([]byte(got.out), &packs); err != nil || len(packs) < 2 {
		t.Fatalf("%+v: %v", got, err)
	}
	if ours := packs[0]; ours.Name != "ours" || ours.Text != "Rules \"ours\", for *.x\nLook for:\n- Our own trap.\n" {
		t.Errorf("the first pack is %+v", ours)
	}
	if !slices.ContainsFunc(packs, func(p pack) bool { return p.Name == "go" && p.Origin == "shipped" }) {
		t.Errorf("the shipped packs are not listed: %+v", packs)
	}
}

func TestWrongRulesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	checkRefusal(t, "p4's wildcard", say(t, newRulesEnvironment(t, "name: ours\nfiles: ['//depot/...']\n"), "rules", "list"), 1, "site.yaml:2: ")
	for _, args := range [][]string{{"rules"}, {"rules", "check"}, {"rules", "list", "x"}, {"rules", "show"}} {
		if got := say(t, nil, args...); got.status != 2 {
			t.Errorf("%v: status %d, %q", args, got.status, got.err)
		}
	}
}
