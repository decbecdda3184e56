package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A document is a YAML file while it is read. The syntax tree is walked here
// instead of decoded by the library, so that all problems come at once, each
// with its field's full name, and no value passes two ways of parsing.
type document struct {
	fields   []field
	lines    map[string]int // where each name was seen
	problems []error
}

func setFromYAML(fields []field, data []byte) []error {
	// The duplicates are reported below, by their full name.
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return []error{syntaxProblem(err)}
	}
	if len(file.Docs) > 1 {
		return []error{errors.New("the file holds several documents: delete all --- lines but the first")}
	}
	d := document{fields: fields, lines: map[string]int{}}
	for _, doc := range file.Docs {
		if doc.Body != nil { // nil: nothing but comments
			d.readSection("", doc.Body)
		}
	}
	return d.problems
}

// syntaxProblem leaves out the library's excerpt of the file, for it may show a
// secret that does not belong there.
func syntaxProblem(err error) error {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return errors.New("the file is not YAML: correct it")
	}
	return fmt.Errorf("line %d: %s: correct the YAML there", e.GetToken().Position.Line, e.GetMessage())
}

// readSection reads a mapping whose names begin with prefix.
func (d *document) readSection(prefix string, node ast.Node) {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		name := strings.TrimSuffix(prefix, ".")
		if name == "" {
			name = "the file"
		}
		d.report(name, node.GetToken().Position.Line, "is not a section: write its fields below it, as name: value")
		return
	}
	for entry := mapping.MapRange(); entry.Next(); {
		key := entry.Key().GetToken()
		d.readEntry(prefix, key.Value, key.Position.Line, entry.Value())
	}
}

func (d *document) readEntry(prefix, key string, line int, value ast.Node) {
	name := prefix + key
	if first, twice := d.lines[name]; twice {
		d.report(name, line, fmt.Sprintf("stands on line %d already: delete one", first))
		return
	}
	d.lines[name] = line
	known := slices.Contains(d.namesIn(prefix), key)
	i := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
	switch {
	case !known:
		d.report(name, line, d.unknown(prefix, key))
	case i >= 0:
		if err := d.fields[i].setNode(value); err != nil {
			d.report(name, line, err.Error())
		}
	case value.Type() != ast.NullType: // a section may be empty
		d.readSection(name+".", value)
	}
}

func (d *document) report(name string, line int, problem string) {
	d.problems = append(d.problems, fmt.Errorf("%s (line %d): %s", name, line, problem))
}

// namesIn lists what may stand in a section: fields, and at the top sections.
func (d *document) namesIn(prefix string) []string {
	var names []string
	for _, f := range d.fields {
		if rest, ok := strings.CutPrefix(f.name, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

var looksSecret = regexp.MustCompile(`(?i)pass|pwd|secret|token|ticket|key|credential|auth|dsn`)

// unknown says what to do about a name that is no field. One that looks like a
// secret is told where the section's secrets come from instead (security 9.3.1).
func (d *document) unknown(prefix, key string) string {
	if !looksSecret.MatchString(key) {
		return "is no field: write one of " + strings.Join(d.namesIn(prefix), ", ")
	}
	for _, f := range d.fields {
		if _, ok := f.secret(); ok && prefix != "" && strings.HasPrefix(f.name, prefix) {
			return secretProblem(f.variable)
		}
	}
	return secretProblem("its variable, listed in docs/configuration.md")
}

func secretProblem(variable string) string {
	return "looks like a secret, which does not belong in a file: renew it if others could read it, and set " + variable +
		" instead (or the same name with _FILE)"
}

// setNode gives the field the value of a YAML node.
func (f field) setNode(node ast.Node) error {
	if _, ok := f.secret(); ok {
		return errors.New(secretProblem(f.variable))
	}
	if node.Type() == ast.NullType {
		return errors.New("has no value: give it one or delete the line")
	}
	if f.value.Kind() != reflect.Slice || node.Type() != ast.SequenceType {
		text, err := f.kind().text(node)
		if err != nil {
			return err
		}
		return f.set(text)
	}
	texts := []string{}
	for _, item := range node.(*ast.SequenceNode).Values {
		text, err := kinds[f.value.Type().Elem()].text(item)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	return f.set(texts...)
}

// text is what a node of one of the kind's types says, as it is written.
func (k kind) text(node ast.Node) (string, error) {
	var text string
	switch node := node.(type) {
	case *ast.StringNode:
		text = node.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text = node.GetToken().Value
	default:
		text = "a YAML " + node.Type().YAMLName()
	}
	if !slices.Contains(k.nodes, node.Type()) {
		return "", k.refuse(text)
	}
	return text, nil
}
