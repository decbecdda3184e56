package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/criticizer/criticizer/internal/glob"
)

// Limits in bytes: a pack is part of every prompt about its files.
const (
	maxTextBytes = 500
	maxPackBytes = 6_000
)

// maxFields is the number of fields of a [Pack] in YAML.
const maxFields = 5

var packName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// parse adds the packs of a file, one per YAML document. The error joins all problems.
func (b *Set) parse(name string, data []byte) error {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	var problems []error
	empty := true
	for err == nil {
		var doc yaml.Node
		if err = loader.Load(&doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" { // only comments
			continue
		}
		empty = false
		pack, err := newPack(name, doc.Content[0])
		problems = append(problems, err)
		if slices.ContainsFunc(b.packs, func(other Pack) bool { return other.Name == pack.Name }) {
			problems = append(problems, fmt.Errorf("%s: pack %q is defined before: rename or delete one", pack.Origin, pack.Name))
		}
		b.packs = append(b.packs, pack)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return located(name, err)
	case empty:
		problems = append(problems, fmt.Errorf("%s:1: the file holds no pack: write name, files and look_for", name))
	}
	return errors.Join(problems...)
}

// newPack decodes and checks a pack of a file.
func newPack(file string, node *yaml.Node) (Pack, error) {
	p := Pack{Origin: fmt.Sprintf("%s:%d", file, node.Line)}
	if m := crowded(node); m != nil {
		return p, fmt.Errorf("%s:%d: a mapping has more than the %d fields of a pack", file, m.Line, maxFields)
	}
	if err := node.Load(&p, yaml.WithKnownFields()); err != nil {
		return p, located(file, err)
	}
	var problems []error
	checkItem := func(wrong bool, list string, item int, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("%s:%d: %s: %s", file, lineOf(node, list, item), list, fmt.Sprintf(format, args...)))
		}
	}
	check := func(wrong bool, field, format string, args ...any) { checkItem(wrong, field, -1, format, args...) }
	check(!packName.MatchString(p.Name), "name", "%q is not a pack name: write lower-case letters, digits, - and _", p.Name)
	check(len(p.Patterns) == 0, "files", "the pack has no files: write patterns such as ['*.go']")
	check(len(p.LookFor)+len(p.DoNotReport) == 0, "look_for", "the pack has no rule: write one")
	for _, list := range []struct {
		name  string
		texts []string
	}{{"files", p.Patterns}, {"look_for", p.LookFor}, {"do_not_report", p.DoNotReport}} {
		for i, text := range list.texts {
			text = strings.TrimSpace(text)
			checkItem(text == "", list.name, i, "an item is empty: delete it")
			checkItem(!legible(text), list.name, i, "an item has a line break or an invisible character, or is not UTF-8: write one line of plain text")
			checkItem(len(text) > maxTextBytes, list.name, i, "an item has %d bytes, more than %d: split it", len(text), maxTextBytes)
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

// crowded returns a mapping in n that has more fields than a pack, nil if there is none. The
// YAML library reports each pair of equal keys: 12,000 of them take gigabytes.
func crowded(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxFields {
		return n
	}
	for _, child := range n.Content {
		if found := crowded(child); found != nil {
			return found
		}
	}
	return nil
}

// lineOf returns the line of a field of a pack, or of an item of it, or of the pack if it has
// no such part.
func lineOf(pack *yaml.Node, field string, item int) int {
	at := slices.IndexFunc(pack.Content, func(n *yaml.Node) bool { return n.Value == field })
	if at < 0 || at+1 == len(pack.Content) {
		return pack.Line
	}
	value := pack.Content[at+1]
	if item >= 0 && item < len(value.Content) {
		return value.Content[item].Line
	}
	return value.Line
}

// located puts file and line before a problem that the YAML library reports.
func located(file string, err error) error {
	if at, ok := errors.AsType[*yaml.LoadError](err); ok && at.Mark.Line > 0 {
		return fmt.Errorf("%s:%d: %s", file, at.Mark.Line, at.Message)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// legible reports whether a person who reads s sees all of it.
func legible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf) })
}
