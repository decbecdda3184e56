package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/criticizer/criticizer/internal/glob"
)

// Limits in bytes: a pack is part of every prompt about its files.
const (
	maxTextBytes = 500
	maxPackBytes = 6_000
)

var packName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// parse adds the packs of a file, one per YAML document. The error joins all problems.
func (b *Set) parse(name string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return located(name, err)
	}
	var problems []error
	empty := true
	for _, doc := range file.Docs {
		if doc.Body == nil { // only comments
			continue
		}
		empty = false
		pack, err := newPack(name, doc.Body)
		problems = append(problems, err)
		if slices.ContainsFunc(b.packs, func(other Pack) bool { return other.Name == pack.Name }) {
			problems = append(problems, fmt.Errorf("%s: pack %q is defined before: rename or delete one", pack.Origin, pack.Name))
		}
		b.packs = append(b.packs, pack)
	}
	if empty {
		problems = append(problems, fmt.Errorf("%s:1: the file holds no pack: write name, files and look_for", name))
	}
	return errors.Join(problems...)
}

// newPack decodes and checks a pack of a file.
func newPack(file string, node ast.Node) (Pack, error) {
	p := Pack{Origin: fmt.Sprintf("%s:%d", file, node.GetToken().Position.Line)}
	if err := yaml.NodeToValue(node, &p, yaml.Strict()); err != nil {
		return p, located(file, err)
	}
	var problems []error
	check := func(wrong bool, part, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("%s:%d: %s: %s", file, lineOf(node, part), part, fmt.Sprintf(format, args...)))
		}
	}
	check(!packName.MatchString(p.Name), "name", "%q is not a pack name: write lower-case letters, digits, - and _", p.Name)
	check(len(p.Patterns) == 0, "files", "the pack has no files: write patterns such as ['*.go']")
	check(len(p.LookFor)+len(p.DoNotReport) == 0, "look_for", "the pack has no rule: write one")
	for _, list := range []struct {
		name  string
		texts []string
	}{{"files", p.Patterns}, {"look_for", p.LookFor}, {"do_not_report", p.DoNotReport}} {
		for i, text := range list.texts {
			part := fmt.Sprintf("%s[%d]", list.name, i)
			text = strings.TrimSpace(text)
			check(text == "", part, "is empty: delete it")
			check(!legible(text), part, "has a line break or an invisible character, or is not UTF-8: write one line of plain text")
			check(len(text) > maxTextBytes, part, "has %d bytes, more than %d: split it", len(text), maxTextBytes)
			list.texts[i] = text
		}
	}
	var err error
	p.files, err = glob.ParseList(p.Patterns)
	check(err != nil, "files", "%v", err)
	check(len(p.Text()) > maxPackBytes, "name", "the pack has %d bytes, more than %d: it is part of every prompt about its files, so keep what matters most",
		len(p.Text()), maxPackBytes)
	return p, errors.Join(problems...)
}

// lineOf returns the line of a part of a pack, or of the pack if it has no such part.
func lineOf(pack ast.Node, part string) int {
	if path, err := yaml.PathString("$." + part); err == nil {
		if node, err := path.FilterNode(pack); err == nil && node != nil {
			return node.GetToken().Position.Line
		}
	}
	return pack.GetToken().Position.Line
}

// located puts file and line before a problem that the YAML library reports.
func located(file string, err error) error {
	if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", file, at.GetToken().Position.Line, at.GetMessage())
	}
	return fmt.Errorf("%s: %w", file, err)
}

// legible reports whether a person who reads s sees all of it.
func legible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf) })
}
