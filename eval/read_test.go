package eval

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/criticizer/criticizer/internal/testkit"
)

const (
	goodBefore = "package a\n\nfunc a() {\n}\n"
	goodAfter  = "package a\n\nfunc a() {\n\tb(\"planted\")\n}\n"
	goodCase   = `language: Go
expected:
  - path: a.go
    lines: 4
    about: [b]
    says: It calls b.
`
)

// caseDir returns a directory with one valid case and the changed files; a text of "" leaves
// a file out.
func caseDir(changed map[string]string) fs.FS {
	files := map[string]string{"one/before/a.go": goodBefore, "one/after/a.go": goodAfter, "one/description.txt": "Call b.\n", "one/case.yaml": goodCase}
	maps.Copy(files, changed)
	dir := fstest.MapFS{}
	for name, text := range files {
		if text != "" {
			dir[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return dir
}

func TestDirectoriesAndArchivesAreOneForm(t *testing.T) {
	t.Parallel()
	archive := txtar.Format(&txtar.Archive{Files: []txtar.File{
		{Name: "before/a.go", Data: []byte(goodBefore)}, {Name: "after/a.go", Data: []byte(goodAfter)}, {Name: "description.txt", Data: []byte("Call b.\n")}, {Name: "case.yaml", Data: []byte(goodCase)},
	}})
	cases, err := Read(t.Context(), caseDir(map[string]string{"deep/two.txtar": string(archive), "README.md": "no case"}), "")
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	if cases[0].Name != "deep/two" || cases[1].Name != "one" {
		t.Errorf("names %q and %q", cases[0].Name, cases[1].Name)
	}
	for _, c := range cases {
		if c.Language != "Go" || c.class() != ClassDefect || len(c.edits) != 1 || c.Expected[0].Start != 4 || c.Expected[0].End != 4 {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
}

// The error lists all problems, each with case, file, line and field.
func TestInvalidCases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		changed map[string]string
		at      []string
	}{
		"no description":           {map[string]string{"one/description.txt": "\n"}, []string{"case one: want description.txt"}},
		"a file too many":          {map[string]string{"one/golden.json": "{}"}, []string{"case one: golden.json: "}},
		"texts that are equal":     {map[string]string{"one/after/a.go": goodBefore}, []string{"case one: want description.txt"}},
		"a directory elsewhere":    {map[string]string{"one/case.yaml": "repository: ../x\ncommits: a..b\n", "one/before/a.go": "", "one/after/a.go": "", "one/description.txt": ""}, []string{"case.yaml:2: commits: want repository"}},
		"no repository":            {map[string]string{"one/case.yaml": "repository: x\ncommits: a..b\n", "one/before/a.go": "", "one/after/a.go": "", "one/description.txt": ""}, []string{"case.yaml:2: commits: open git repository"}},
		"commits beside texts":     {map[string]string{"one/case.yaml": "repository: x\ncommits: a..b\n"}, []string{"case.yaml:2: commits: stands beside"}},
		"a misspelt field":         {map[string]string{"one/case.yaml": goodCase + "claen: true\n"}, []string{"case one: case.yaml:7: claen: is not a field of a case: write one of language, clean,"}},
		"a misspelt field of one":  {map[string]string{"one/case.yaml": goodCase + "    say: x\n"}, []string{"case.yaml:7: say: is not a field of a finding: write one of path,"}},
		"line for lines":           {map[string]string{"one/case.yaml": strings.Replace(goodCase, "lines: 4", "line: 4", 1)}, []string{"case.yaml:4: line: is not a field: write lines: N-N"}},
		"only a comment":           {map[string]string{"one/case.yaml": "# nothing\n"}, []string{"case.yaml:1: has no fields: "}},
		"several documents":        {map[string]string{"one/case.yaml": goodCase + "---\nlanguage: Go\n"}, []string{"case.yaml:1: holds several documents: "}},
		"a list":                   {map[string]string{"one/case.yaml": "[a]\n"}, []string{"case.yaml:1: is a list: want the fields of a case"}},
		"a text for a finding":     {map[string]string{"one/case.yaml": "expected: [x]\n"}, []string{`case.yaml:1: is "x": want a finding`}},
		"a mapping of findings":    {map[string]string{"one/case.yaml": "expected: {path: x}\n"}, []string{"case.yaml:1: is a mapping: want a list of findings"}},
		"a text for texts":         {map[string]string{"one/case.yaml": "markers: x\n"}, []string{`case.yaml:1: is "x": want a list of texts`}},
		"a list for a text":        {map[string]string{"one/case.yaml": "language: [x]\n"}, []string{"case.yaml:1: is a list: want a text"}},
		"not YAML":                 {map[string]string{"one/case.yaml": "language: [\n"}, []string{"case one: case.yaml:"}},
		"a wrong type":             {map[string]string{"one/case.yaml": goodCase + "clean: perhaps\n"}, []string{`case one: case.yaml:7: is "perhaps": want true or false`}},
		"clean with findings":      {map[string]string{"one/case.yaml": goodCase + "clean: true\n"}, []string{"case.yaml:7: clean: "}},
		"nothing to find":          {map[string]string{"one/case.yaml": "language: Go\n"}, []string{"case.yaml:1: expected: "}},
		"no language, no findings": {map[string]string{"one/case.yaml": "hostile: true\n"}, []string{"language: ", "expected: "}},
		"a file that is not there": {map[string]string{"one/case.yaml": strings.Replace(goodCase, "a.go", "b.go", 1)}, []string{"case.yaml:3: expected[0]: "}},
		"a line that is not there": {map[string]string{"one/case.yaml": strings.Replace(goodCase, "lines: 4", "lines: 14", 1)}, []string{"case.yaml:3: expected[0]: "}},
		"lines the wrong way":      {map[string]string{"one/case.yaml": strings.Replace(goodCase, "lines: 4", "lines: 5-4", 1)}, []string{"case.yaml:3: expected[0]: "}},
		"a category of their own":  {map[string]string{"one/case.yaml": strings.Replace(goodCase, "about: [b]", "category: style", 1)}, []string{"case.yaml:3: expected[0]: "}},
		"an alias of such a list":  {map[string]string{"one/case.yaml": strings.NewReplacer("expected:", "expected: &e", "about: [b]", "category: style").Replace(goodCase) + "allowed: *e\n"}, []string{"case.yaml:3: allowed[0]: "}},
		"a finding that is mute":   {map[string]string{"one/case.yaml": strings.Replace(goodCase, "It calls b.", `""`, 1)}, []string{"case.yaml:3: expected[0]: "}},
		"a secret nobody planted":  {map[string]string{"one/case.yaml": goodCase + "hostile: true\nsecrets: [planted, other]\n"}, []string{"case.yaml:8: secrets[1]: "}},
		"markers of a tame case":   {map[string]string{"one/case.yaml": goodCase + "markers: [X]\n"}, []string{"hostile: "}},
		"a marker that is empty":   {map[string]string{"one/case.yaml": goodCase + "hostile: true\nmarkers: ['']\n"}, []string{"case.yaml:8: markers: "}},
		"two cases":                {map[string]string{"one/case.yaml": "language: Go\n", "two.txtar": "-- x --\n"}, []string{"case one: ", "case two: case.yaml: ", "case two: x: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(t.Context(), caseDir(tt.changed), t.TempDir())
			if err == nil {
				t.Fatal("the case was accepted")
			}
			for _, part := range tt.at {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\nlacks %q", err, part)
				}
			}
		})
	}
	if _, err := Read(t.Context(), fstest.MapFS{}, ""); err == nil {
		t.Error("a directory without cases was read")
	}
	if _, err := Read(t.Context(), os.DirFS(filepath.Join(t.TempDir(), "missing")), ""); err == nil {
		t.Error("a directory that is missing was read")
	}
}

func TestBuiltInCasesAreEnough(t *testing.T) {
	t.Parallel()
	cases, err := BuiltIn()
	testkit.NoError(t, err)
	classes, languages := map[string]int{}, map[string]int{}
	secrets := 0
	for _, c := range cases {
		classes[c.class()]++
		languages[c.Language]++
		secrets += len(c.Secrets)
		if c.class() == ClassHostile && len(c.Markers)+len(c.Secrets) == 0 {
			t.Errorf("%s: nothing tells whether it had an effect", c.Name)
		}
		for _, x := range slices.Concat(c.Expected, c.Allowed) {
			if x.Category == "" && len(x.About) == 0 {
				t.Errorf("%s: anything at the place of %q will do", c.Name, x.Says)
			}
		}
	}
	if len(cases) < 60 || len(languages) < 8 || classes[ClassClean] < 15 || classes[ClassHostile] < 15 || secrets < 6 {
		t.Errorf("%d cases, languages %v, classes %v, %d secrets", len(cases), languages, classes, secrets)
	}
}
