package config

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/configuration.md")

const (
	page        = "../docs/configuration.md"
	beginTables = "<!-- Generated from internal/config/config.go by: go test ./internal/config -run TestDocs -update -->\n"
	endTables   = "<!-- End of what is generated. -->\n"
)

// The page lists every field with its variable, default and meaning as the
// struct tree has them.
func TestDocsListEveryField(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := bytes.Cut(have, []byte(beginTables))
	_, after, ok2 := bytes.Cut(rest, []byte(endTables))
	if !ok1 || !ok2 {
		t.Fatalf("%s has lost the marks of its generated part", page)
	}
	want := fmt.Appendf(nil, "%s%s%s%s%s", before, beginTables, tables(t), endTables, after)
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what config.go says: run go test ./internal/config -run TestDocs -update", page)
	}
	if err := os.WriteFile(page, want, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tables renders one table per section of the struct tree.
func tables(t *testing.T) string {
	t.Helper()
	comments := commentsOf(t, "config.go")
	var out strings.Builder
	section := "none yet"
	for _, f := range fieldsOf(new(Config)) {
		of := f.name[:max(0, strings.LastIndex(f.name, "."))]
		if of != section {
			section = of
			out.WriteString(heading(section, comments))
		}
		meaning, ok := comments[f.name]
		if !ok {
			t.Errorf("%s has no comment", f.name)
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", f.name, f.variable, defaultOf(f), strings.ReplaceAll(meaning, "|", `\|`))
	}
	return out.String()
}

func heading(section string, comments map[string]string) string {
	const head = "| field | variable | default | meaning |\n|---|---|---|---|\n"
	if section == "" {
		return "\n" + head
	}
	return fmt.Sprintf("\n### %s\n\n%s\n\n%s", section, comments[section], head)
}

func defaultOf(f field) string {
	if _, ok := f.secret(); ok {
		return "secret"
	}
	if f.standard == "" {
		return "none"
	}
	return "`" + f.standard + "`"
}

// commentsOf reads the comments of the struct tree, by full name of the field
// or section.
func commentsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		spec := gen.Specs[0].(*ast.TypeSpec)
		section := sectionNames()[spec.Name.Name]
		if _, about, ok := strings.Cut(oneLine(gen.Doc), " says "); ok {
			comments[section] = strings.ToUpper(about[:1]) + about[1:]
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc != nil {
				comments[strings.TrimPrefix(section+"."+yamlName(t, f), ".")] = oneLine(f.Doc)
			}
		}
	}
	return comments
}

func yamlName(t *testing.T, f *ast.Field) string {
	t.Helper()
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.StructTag(tag).Get("yaml")
}

// sectionNames maps the type of each section, however deep, to its name in the
// file.
func sectionNames() map[string]string {
	names := map[string]string{}
	nameSections(reflect.TypeFor[Config](), "", names)
	return names
}

func nameSections(of reflect.Type, prefix string, names map[string]string) {
	for f := range of.Fields() {
		if _, leaf := kinds[f.Type]; leaf {
			continue
		}
		names[f.Type.Name()] = prefix + f.Tag.Get("yaml")
		nameSections(f.Type, prefix+f.Tag.Get("yaml")+".", names)
	}
}

func oneLine(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}

// The example of the page is one that works.
func TestDocsExampleWorks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(allRoles...); err != nil {
		t.Error(err)
	}
}

// The page says which sections each role needs.
func TestDocsListEveryRole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for role, sections := range needs {
		row := regexp.MustCompile(`(?m)^\|[^|]*\b` + string(role) + `\b[^|]*\| ` + strings.Join(sections, ", ") + ` \|$`)
		if !row.Match(text) {
			t.Errorf("%s does not say that %s needs %s", page, role, strings.Join(sections, ", "))
		}
	}
}
