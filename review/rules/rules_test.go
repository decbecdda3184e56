package rules

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/internal/testkit"
)

// The first pack with a pattern for the path counts, and those that it adds.
func TestShippedPacks(t *testing.T) {
	t.Parallel()
	set, err := Load()
	testkit.NoError(t, err)
	for file, want := range map[string]string{
		"main.go":                              "go",
		"jam.c":                                "cpp",
		"Source/Hero/Private/Hero.cpp":         "unreal cpp",
		"Source/Hero/Private/AI/HeroBrain.cpp": "unreal cpp",
		"Source/Hero/Hero.Build.cs":            "unreal csharp",
		"engine/source/hero.cpp":               "cpp",
		"Hero.cs":                              "csharp",
		"Hero.java":                            "java",
		"Hero.kt":                              "kotlin",
		"hero.rs":                              "rust",
		"Hero.swift":                           "swift",
		"hero.lua":                             "lua",
		"Shaders/Hero.usf":                     "shader",
		"tool.py":                              "python",
		"setup.py":                             "build python",
		"app.tsx":                              "typescript",
		"0001_init.sql":                        "sql",
		"core.sv":                              "verilog",
		"core.vhd":                             "vhdl",
		"Makefile":                             "build",
		"CMakeLists.txt":                       "build",
		"deploy.sh":                            "build shell",
		".github/workflows/ci.yml":             "build yaml",
		"values.yaml":                          "yaml",
		"README.md":                            "",
	} {
		if got := names(set.For("//depot/main/" + file)); got != want {
			t.Errorf("%s: packs %q, want %q", file, got, want)
		}
	}
	for _, pack := range set.Packs() {
		if len(pack.LookFor) < 4 || len(pack.DoNotReport) == 0 || pack.Origin != "shipped" {
			t.Errorf("pack %s of %s has %d and %d rules", pack.Name, pack.Origin, len(pack.LookFor), len(pack.DoNotReport))
		}
	}
}

func names(found []Match) string {
	var all []string
	for _, m := range found {
		all = append(all, m.Name)
	}
	return strings.Join(all, " ")
}

// Packs of teams add to the others and replace none.
func TestTeamPacksAdd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "site.yaml"), payments+"---\nname: money\nfiles: ['*.m.go']\nalso: [payments, go]\nlook_for:\n- x\n")
	set, err := Load(dir)
	testkit.NoError(t, err)
	team, err := set.WithTeam("//depot/team/rules.yaml#3", "name: go\nfiles: ['*.go']\nalso: [sql]\nlook_for:\n- Our own trap.\n")
	testkit.NoError(t, err)
	for path, want := range map[string]string{
		"//depot/a.go": "depot:go go", "//depot/payments/a.go": "depot:go payments", "//depot/a.py": "python", "//depot/payments/x.py": "payments", "//depot/a.m.go": "depot:go go",
	} {
		if got := names(team.For(path)); got != want {
			t.Errorf("%s: packs %q, want %q", path, got, want)
		}
	}
	if got := names(set.For("//depot/a.go")); got != "go" || len(team.Packs()) != len(set.Packs())+1 || team.Packs()[0].Origin != "//depot/team/rules.yaml#3:1" {
		t.Errorf("the set without the team has %q, with it %+v", got, team.Packs()[0])
	}
	for _, text := range []string{"", "name: go\n", "- \t[", "name: go\nfiles: ['*.go']\nlook_for:\n- again\n"} {
		if _, err := team.WithTeam("//depot/b.yaml#1", text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// A file of a team is part of every review: one that the parser of YAML reads in gigabytes
// would end each worker.
func TestTeamFileTakesLittleMemory(t *testing.T) {
	for _, unit := range []string{"[", "[']',", "- "} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := (&Set{}).WithTeam("//depot/team/rules.yaml#3", strings.Repeat(unit, 20_000))
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || used > 100 {
			t.Errorf("20,000 times %q: %d MB, error %v", unit, used, err != nil)
		}
	}
}

const payments = `# ours
name: payments
files: [//depot/payments/**, '*.pay']
look_for:
  - Amounts in floating point,
    which lose cents.
do_not_report:
  - Missing comments.
---
name: go
files: ['*.go']
look_for:
  - Only this.
`

func TestConfiguredPacksComeFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "site.yaml"), payments)
	write(t, filepath.Join(dir, "notes.txt"), "no rules")
	set, err := Load(dir)
	testkit.NoError(t, err)
	found := set.For("//depot/payments/cents.go")
	pack, pattern := found[0].Pack, found[0].Pattern
	want := "Rules \"payments\", for //depot/payments/** *.pay\nLook for:\n- Amounts in floating point, which lose cents.\nDo not report:\n- Missing comments.\n"
	if len(found) != 1 || pack.Text() != want || pattern != "//depot/payments/**" || !strings.HasSuffix(pack.Origin, "site.yaml:2") {
		t.Errorf("pack of %s by %q:\n%s", pack.Origin, pattern, pack.Text())
	}
	if found := set.For("//depot/main/a.go"); len(found) != 1 || len(found[0].LookFor) != 1 {
		t.Errorf("the shipped pack of that name was not replaced: %+v", found)
	}
	if found := set.For("//depot/main/a.py"); len(found) != 1 || found[0].Origin != "shipped" {
		t.Errorf("another shipped pack is gone: %+v", found)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// The error names every problem with its line.
func TestLoadReportsLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, line string }{
		"nothing":                       {"\n# nothing\n", ":1: "},
		"no YAML":                       {"name: a\nfiles: [\n", ":3: "},
		"no mapping":                    {"- a\n", ":1: "},
		"rules without a pack":          {"look_for: [x]\n", ":1: "},
		"a name with blanks":            {"name: our rules\nfiles: ['*.go']\nlook_for: [x]\n", ":1: "},
		"p4's wildcard":                 {"name: a\nfiles: [//depot/...]\nlook_for: [x]\n", ":2: "},
		"no files":                      {"name: a\nlook_for: [x]\n", ":1: "},
		"no rules":                      {"name: a\nfiles: ['*.go']\nlook_for:\n", ":3: "},
		"an empty remark":               {"name: a\nfiles: ['*.go']\nlook_for:\n- x\n- ''\n", ":5: "},
		"a remark that is not text":     {"name: a\nfiles: ['*.go']\nlook_for:\n- x: y\n", ":4: "},
		"an unknown field":              {"name: a\nfiles: ['*.go']\nlook_for: [x]\n\nignore: ['*.x']\n", ":5: "},
		"a field that stands twice":     {"name: a\nfiles: ['*.go']\nlook_for: [x]\nlook_for: [y]\n", ":4: "},
		"an addition that is not one":   {"name: a\nfiles: ['*.go']\nalso: [nothing]\nlook_for: [x]\n", ":1: "},
		"a remark too long":             {"name: a\nfiles: ['*.go']\nlook_for:\n- " + strings.Repeat("x", 501), ":4: "},
		"a pack too long":               {"name: a\nfiles: ['*.go']\nlook_for:\n" + strings.Repeat("- "+strings.Repeat("x", 400)+"\n", 16), ":1: "},
		"a pack that stands twice":      {"name: a\nfiles: ['*.go']\nlook_for: [x]\n---\nname: a\nfiles: ['*.c']\nlook_for: [x]\n", ":5: "},
		"text that reverses its order":  {"name: a\nfiles: ['*.go']\nlook_for:\n- \u202ex\n", ":4: "},
		"an escape with that effect":    {"name: a\nfiles: ['*.go']\nlook_for:\n- \"\\u202ex\"\n", ":4: "},
		"a remark of two lines":         {"name: a\nfiles: ['*.go']\nlook_for:\n- \"x\\nRules: y\"\n", ":4: "},
		"text of another encoding":      {"name: a\nfiles: ['*.go']\nlook_for:\n- caf\xe9\n", ": "},
		"a second problem of the files": {"name: A\nfiles: [/x]\n", ":2: "},
	} {
		file := filepath.Join(t.TempDir(), "site.yaml")
		write(t, file, tt.text)
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), file+tt.line) {
			t.Errorf("%s: error is %v, want a problem on line %q", name, err, tt.line)
		}
	}
}

// A rule file of a team with many equal keys does not exhaust the worker.
func TestManyEqualKeys(t *testing.T) {
	t.Parallel()
	keys := strings.Repeat("a: b\n", 12_000)
	for name, text := range map[string]string{
		"of a pack":  keys,
		"of a field": "name: a\nlook_for:\n  " + strings.ReplaceAll(strings.TrimSpace(keys), "\n", "\n  "),
	} {
		var err error
		used := cputest.Time(func() { _, err = new(Set).WithTeam("depot:rules.yaml", text) })
		if err == nil || used > 2*time.Second {
			t.Errorf("%s: took %s, error %v", name, used, err)
		}
	}
}

func TestLoadRejectsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two, open := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml"), filepath.Join(t.TempDir(), "open.yaml")
	write(t, one, payments)
	write(t, two, payments)
	write(t, open, payments)
	testkit.NoError(t, os.Chmod(open, 0o666))
	empty := t.TempDir()
	for path, names := range map[string]string{
		dir:         two,
		open:        open,
		dir + "/no": dir + "/no",
		empty:       empty,
	} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: error %v, want one that names %s", path, err, names)
		}
	}
}
