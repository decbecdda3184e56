package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A document is a YAML file while it is read. It walks the syntax tree, because the
// library's decoder stops at the first problem and does not name fields in full.
type document struct {
	program  Program
	fields   []Setting
	lines    map[string]int // line of each name
	problems []error
}

func (p Program) setFromYAML(fields []Setting, data []byte) []error {
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments()); err != nil {
		return []error{syntaxProblem(err)}
	}
	if len(docs) > 1 {
		return []error{errors.New("the file holds several documents: delete all --- lines but the first")}
	}
	d := document{program: p, fields: fields, lines: map[string]int{}}
	for _, doc := range docs {
		if len(doc.Content) > 0 && !isNull(doc.Content[0]) { // else only comments
			d.readSection("", doc.Content[0])
		}
	}
	return d.problems
}

// syntaxProblem leaves out a message that quotes the file: it may show a secret.
func syntaxProblem(err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok || e.Mark.Line == 0 {
		return errors.New("the file is not YAML: correct it")
	}
	what := e.Message
	if strings.ContainsAny(what, "'`\"") {
		what = "it is not YAML"
	}
	if from := e.ContextMark.Line; from > 0 && from < e.Mark.Line {
		what += fmt.Sprintf(" (%s that begins on line %d)", e.ContextMsg, from)
	}
	return fmt.Errorf("line %d: %s: correct the YAML there", e.Mark.Line, what)
}

// readSection reads a mapping whose names start with prefix.
func (d *document) readSection(prefix string, node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		name := strings.TrimSuffix(prefix, ".")
		if name == "" {
			name = "the file"
		}
		d.report(name, node.Line, "is not a section: write its fields below it, as name: value")
		return
	}
	for entry := range slices.Chunk(node.Content, 2) {
		d.readEntry(prefix, entry[0].Value, entry[0].Line, entry[1])
	}
}

func (d *document) readEntry(prefix, key string, line int, value *yaml.Node) {
	name := prefix + key
	if first, twice := d.lines[name]; twice {
		d.report(name, line, fmt.Sprintf("is on line %d already: delete one", first))
		return
	}
	d.lines[name] = line
	i := slices.IndexFunc(d.fields, func(f Setting) bool { return f.Name == name })
	switch {
	case prefix == "" && d.program.Shared && isSection(value) && !d.isNearOwn(key):
	case !slices.Contains(d.namesIn(prefix), key):
		d.report(name, line, d.unknown(prefix, key))
	case i >= 0:
		if err := d.fields[i].setNode(value); err != nil {
			d.report(name, line, err.Error())
		}
	case !isNull(value): // a section may be empty
		d.readSection(name+".", value)
	}
}

func (d *document) report(name string, line int, problem string) {
	d.problems = append(d.problems, fmt.Errorf("%s (line %d): %s", name, line, problem))
}

func (d *document) namesIn(prefix string) []string {
	var names []string
	for _, f := range d.fields {
		if rest, ok := strings.CutPrefix(f.Name, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// isSection reports whether a node is a mapping, or the missing value of an empty section.
func isSection(node *yaml.Node) bool { return node.Kind == yaml.MappingNode || isNull(node) }

func isNull(node *yaml.Node) bool { return node.Tag == "!!null" }

// isNearOwn reports whether key is a section of the program, or one with a typing error: one
// letter in three, but at most two.
func (d *document) isNearOwn(key string) bool {
	return slices.ContainsFunc(d.namesIn(""), func(own string) bool {
		n := distance(own, key)
		return n <= 2 && 3*n <= len(own)
	})
}

// distance counts the letters to insert, delete, replace or swap to get from a to b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

var secretName = regexp.MustCompile(`(?i)pass|pwd|secret|token|ticket|key|credential|auth|dsn`)

// unknown returns the problem with an unknown name. For a name of a secret the hint
// is the variable of the section's secret (security 9.3.1: no secrets in files).
func (d *document) unknown(prefix, key string) string {
	if !secretName.MatchString(key) {
		return "is not a field: write one of " + strings.Join(d.namesIn(prefix), ", ")
	}
	for _, f := range d.fields {
		if f.Secret && prefix != "" && strings.HasPrefix(f.Name, prefix) {
			return secretProblem(f.Variable)
		}
	}
	return secretProblem("its variable, listed in " + d.program.Page)
}

func secretProblem(variable string) string {
	return "is a secret, which must not be in the file: renew it if others could read it, and set " + variable +
		" instead (or the same name with _FILE)"
}

func (f Setting) setNode(node *yaml.Node) error {
	if f.Secret {
		return errors.New(secretProblem(f.Variable))
	}
	items := []*yaml.Node{node}
	k, _ := kindOf(f.value.Type())
	if f.value.Kind() == reflect.Slice {
		if node.Kind != yaml.SequenceNode {
			return k.mismatch(describe(node))
		}
		items = node.Content
		k, _ = kindOf(f.value.Type().Elem())
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if !isText(item) {
			return k.mismatch(describe(item))
		}
		texts[i] = item.Value // as it is written, without its quotes
	}
	return f.set(texts...)
}

func isText(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && !isNull(node) }

func describe(node *yaml.Node) string {
	switch {
	case isText(node):
		return node.Value
	case node.Kind == yaml.MappingNode:
		return "a YAML mapping"
	case node.Kind == yaml.SequenceNode:
		return "a YAML sequence"
	case node.Kind == yaml.AliasNode:
		return "a YAML alias"
	}
	return "a YAML null"
}
