// Package reference writes the lists of a reference page of settings from the comments of
// the structs that package config reads. Tests compare the page with them.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
)

const (
	beginList = "<!-- Generated from the structs of the sections; CONTRIBUTING.md says how. -->\n"
	endList   = "<!-- End of what is generated. -->\n"
)

// Compare fails the test unless the page lists every setting of the struct that of points
// to, with its default and comment. With update it rewrites the page. root is the
// directory of the module.
func Compare(t *testing.T, program config.Program, of any, root, page string, update bool) {
	t.Helper()
	path := filepath.Join(root, page)
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(have), beginList)
	_, after, ok2 := strings.Cut(rest, endList)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks of its generated part", page)
	}
	w := writer{t: t, settings: program.Settings(of), comments: map[string]string{}, first: map[string]string{}, prefix: program.Prefix, root: root}
	w.section("")
	want := before + beginList + w.out.String() + endList + after
	switch {
	case want == string(have):
	case !update:
		t.Errorf("%s is not up to date: run this test with -update", page)
	default:
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

type writer struct {
	t        *testing.T
	settings []config.Setting
	comments map[string]string // by package, struct and field; a package has an entry once it was read
	first    map[string]string // by comment: the field that is listed with it
	prefix   string            // of the variables
	root     string
	out      strings.Builder
}

// section lists the fields of a section, then the sections in it.
func (w *writer) section(name string) {
	w.out.WriteString("\n")
	for _, s := range w.settings {
		if !s.Section && parent(s.Name) == name {
			text := w.comment(s)
			if first, ok := w.first[text]; ok {
				text = "as `" + first + "`."
			} else {
				w.first[text] = s.Name
			}
			w.wrap(fmt.Sprintf("- `%s`%s: %s", s.Name, w.aside(s), text), "  ")
		}
	}
	for _, s := range w.settings {
		if s.Section && parent(s.Name) == name {
			fmt.Fprintf(&w.out, "\n### %s\n\n", s.Name)
			w.wrap(w.comment(s), "")
			w.section(s.Name)
		}
	}
}

// aside returns the default of a field, and its variable if that does not follow from the
// field's name.
func (w *writer) aside(s config.Setting) string {
	byRule := w.prefix + "_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
	switch {
	case s.Secret:
		return " (secret `" + s.Variable + "`)"
	case s.Variable != byRule:
		return " (variable `" + s.Variable + "`)"
	case s.Default != "":
		return " (`" + s.Default + "`)"
	}
	return ""
}

// wrap writes a paragraph in lines of up to 100 characters, all but the first indented.
func (w *writer) wrap(text, indent string) {
	length := 0
	for i, word := range strings.Fields(strings.ReplaceAll(text, "*", `\*`)) {
		switch {
		case i == 0:
		case length+1+len(word) > 100:
			w.out.WriteString("\n" + indent)
			length = len(indent)
		default:
			w.out.WriteString(" ")
			length++
		}
		w.out.WriteString(word)
		length += len(word)
	}
	w.out.WriteString("\n")
}

func parent(name string) string { return name[:max(0, strings.LastIndex(name, "."))] }

// comment returns the comment of the field in its struct.
func (w *writer) comment(s config.Setting) string {
	w.read(s.Owner)
	text := w.comments[s.Owner.PkgPath()+"."+s.Owner.Name()+"."+s.Member]
	if text == "" {
		w.t.Errorf("%s (%s.%s) has no comment", s.Name, s.Owner, s.Member)
	}
	return text
}

// read reads the comments of the structs of a package.
func (w *writer) read(of reflect.Type) {
	if w.comments[of.PkgPath()] != "" {
		return
	}
	w.comments[of.PkgPath()] = "read"
	// The import path of a command's test is "main" or ends in .test.
	dir := filepath.Join(w.root, strings.TrimPrefix(of.PkgPath(), "github.com/criticizer/criticizer/"))
	if strings.HasPrefix(of.String(), "main.") {
		dir = "."
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			w.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					for _, name := range f.Names {
						w.comments[of.PkgPath()+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
}
