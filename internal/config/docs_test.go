package config

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/configuration.md")

const (
	page        = "../../docs/configuration.md"
	beginTables = "<!-- Generated from internal/config by: go test ./internal/config -run TestDocs -update -->\n"
	endTables   = "<!-- End of what is generated. -->\n"
)

// The page lists every field with its variable, default and comment.
func TestDocsListEveryField(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(page)
	testkit.NoError(t, err)
	before, rest, ok1 := bytes.Cut(have, []byte(beginTables))
	_, after, ok2 := bytes.Cut(rest, []byte(endTables))
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks of its generated part", page)
	}
	want := fmt.Appendf(nil, "%s%s%s%s%s", before, beginTables, tables(t), endTables, after)
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not up to date: run go test ./internal/config -run TestDocs -update", page)
	}
	testkit.NoError(t, os.WriteFile(page, want, 0o600))
}

// tables renders one table per section.
func tables(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	writeSection(t, &out, comments(t), reflect.TypeFor[Config](), "")
	return out.String()
}

// writeSection writes the table of the section with the given prefix, and then the
// tables of its own sections.
func writeSection(t *testing.T, out *strings.Builder, comments map[string]string, section reflect.Type, prefix string) {
	t.Helper()
	out.WriteString("\n| field | variable | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fieldsOf(new(Config)) {
		name, ok := strings.CutPrefix(f.name, prefix)
		if !ok || strings.Contains(name, ".") {
			continue
		}
		meaning := comments[section.Name()+"."+name]
		if meaning == "" {
			t.Errorf("%s has no comment", f.name)
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s | %s |\n", f.name, f.variable, defaultOf(f), strings.ReplaceAll(meaning, "|", `\|`))
	}
	for f := range section.Fields() {
		if _, leaf := kinds[f.Type]; leaf || !f.IsExported() {
			continue
		}
		name := prefix + f.Tag.Get("yaml")
		about := cmp.Or(comments[section.Name()+"."+f.Tag.Get("yaml")], comments[f.Type.Name()])
		fmt.Fprintf(out, "\n### %s\n\n%s\n", name, about)
		writeSection(t, out, comments, f.Type, name+".")
	}
}

func defaultOf(f field) string {
	if _, ok := f.secret(); ok {
		return "secret"
	}
	if text := f.tag.Get("default"); text != "" {
		return "`" + text + "`"
	}
	return "none"
}

// comments returns the comments of the structs by type name, without "T configures",
// and of their fields by type and field name.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	testkit.NoError(t, err)
	found := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		testkit.NoError(t, err)
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			spec := gen.Specs[0].(*ast.TypeSpec)
			if _, about, ok := strings.Cut(oneLine(gen.Doc), " configures "); ok {
				found[spec.Name.Name] = strings.ToUpper(about[:1]) + about[1:]
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					if f.Doc != nil && f.Tag != nil {
						found[spec.Name.Name+"."+yamlName(t, f)] = oneLine(f.Doc)
					}
				}
			}
		}
	}
	return found
}

func yamlName(t *testing.T, f *ast.Field) string {
	t.Helper()
	tag, err := strconv.Unquote(f.Tag.Value)
	testkit.NoError(t, err)
	return reflect.StructTag(tag).Get("yaml")
}

func oneLine(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
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
	for _, f := range fieldsOf(new(Config)) {
		if _, ok := f.secret(); ok {
			vars[f.variable] = "set"
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
