package settings

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config/reference"
	"github.com/criticizer/criticizer/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the lists of docs/configuration.md")

const page = "../../docs/configuration.md"

// The page lists every field with its default and comment.
func TestDocsListEveryField(t *testing.T) {
	t.Parallel()
	reference.Compare(t, Program, new(Config), "../..", "docs/configuration.md", *update)
}

func TestDocsExampleWorks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/settings.md")
	testkit.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/settings.md holds no example")
	}
	vars := map[string]string{}
	for _, f := range Program.Settings(new(Config)) {
		if f.Secret {
			vars[f.Variable] = "set"
		}
	}
	vars["CRITICIZER_ONCALL_WEBHOOK_URL"] = "https://hooks.example.com/set"
	vars["CRITICIZER_WEBHOOK_URL"] = "https://hooks.example.com/set"
	c, err := load(t, example, vars)
	testkit.NoError(t, err)
	if err := c.Check(allRoles...); err != nil {
		t.Error(err)
	}
}

// Each example of a configuration on a page has known fields and acceptable values.
func TestDocsExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	testkit.NoError(t, err)
	sections := map[string]bool{}
	for _, f := range Program.Settings(new(Config)) {
		name, _, _ := strings.Cut(f.Name, ".")
		sections[name] = true
	}
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		testkit.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)\n( *)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			example := strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")
			if section, _, _ := strings.Cut(strings.TrimSpace(example), ":"); !sections[section] {
				continue // of another program
			}
			n++
			if _, err := load(t, example, nil); err != nil {
				t.Errorf("%s: %v in the example:%s", page, err, example)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d examples were found: this test does not read the pages", n)
	}
}

// Each setting that a page names exists.
func TestDocsNameSettings(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	testkit.NoError(t, err)
	known, sections := map[string]bool{}, map[string]bool{}
	for _, f := range Program.Settings(new(Config)) {
		section, _, _ := strings.Cut(f.Name, ".")
		known[f.Name], sections[section] = true, true
	}
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		testkit.NoError(t, err)
		for _, named := range regexp.MustCompile("`(([a-z0-9]+)\\.[a-z0-9_.]+)(?::[^`]*)?`").FindAllStringSubmatch(string(text), -1) {
			if !sections[named[2]] || !known[named[1]] && strings.Contains(".md .go .toml .pem .key", filepath.Ext(named[1])) {
				continue // a file
			}
			if n++; !known[named[1]] {
				t.Errorf("%s: there is no setting %s", page, named[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d settings were found: this test does not read the pages", n)
	}
}

func TestDocsListEveryRole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	testkit.NoError(t, err)
	for role, sections := range needs {
		row := regexp.MustCompile(`(?m)^\|[^|]*\b` + string(role) + `\b[^|]*\| ` + strings.Join(sections, ", ") + ` \|$`)
		if !row.Match(text) {
			t.Errorf("%s does not list the sections of %s: %s", page, role, strings.Join(sections, ", "))
		}
	}
}
