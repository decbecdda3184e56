package settings

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config/reference"
	"github.com/criticizer/criticizer/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/configuration.md")

const page = "../../docs/configuration.md"

// The page lists every field with its variable, default and comment.
func TestDocsListEveryField(t *testing.T) {
	t.Parallel()
	reference.Compare(t, Program, new(Config), "../..", "docs/configuration.md", *update)
}

func TestDocsExampleWorks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	testkit.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s holds no example", page)
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
