package redaction

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/redaction/internal/read"
	"github.com/criticizer/criticizer/redaction/internal/token"
)

// ruleFiles are the built-in rules. docs/redaction.md describes their format.
//
//go:embed rules/*.rules
var ruleFiles embed.FS

// A rule is what all kinds of rules have in common: a name and examples.
type rule struct {
	// name is the kind and what the rule matches, such as "call basicauth(".
	name string
	// at is the file and the line, for errors.
	at string
	// In hits, the secret is between « and ». misses stay as they are.
	hits, misses []string
}

// A ruleset holds the parsed rules of all kinds.
type ruleset struct {
	rules  []rule
	names  *judge.Names
	tokens token.Rules
	read   read.Rules
	// off has the names of the rules that are switched off.
	off map[string]bool
	// template is the example of the rules without examples of their own. @ is replaced
	// by a subject.
	template string
}

// tokenTemplate is the example of every token rule.
const tokenTemplate = "key = \"«@»\"⏎see «@» there" //nolint:gosec // no credential

// add parses the fields of a line after the kind. It returns the rules of the line: a line may have
// several.
func (rs *ruleset) add(kind string, f []string) ([]judge.Subject, error) {
	switch kind {
	case "token":
		return rs.tokens.Add(f)
	case "name":
		return rs.names.Add(f)
	case "call":
		return rs.read.AddCall(f)
	case "command":
		return rs.read.AddCommand(f)
	case "form":
		return rs.read.AddForm(f)
	case "off":
		return nil, rs.addOff(f)
	}
	return nil, fmt.Errorf("the kind %q is unknown: want token, name, call, command, form, off, example or file", kind)
}

// builtinRules parses the rules of this package.
func builtinRules() (*ruleset, error) {
	rs := &ruleset{names: judge.NewNames(), off: map[string]bool{}}
	rs.tokens.Names, rs.read.Names = rs.names, rs.names
	files, err := ruleFiles.ReadDir("rules")
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	for _, f := range files {
		data, err := ruleFiles.ReadFile("rules/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		if err := rs.parse(f.Name(), string(data)); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

// LoadRules reads rule files for [Config].Rules. Errors about their rules name
// the file.
func LoadRules(files ...string) (string, error) {
	var b strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read redaction rules: %w", err)
		}
		fmt.Fprintf(&b, "file %s\n%s\n", name, data)
	}
	return b.String(), nil
}

// parse adds the rules of a file. A line that begins in the first column is a
// rule; the indented lines below it are its examples. A line "example TEXT" sets
// the example of the rules below it. A line "file NAME" sets the name of the file
// that the lines after it come from.
func (rs *ruleset) parse(file, data string) error {
	first, n := len(rs.rules), 0
	rs.template = ""
	for line := range strings.Lines(data) {
		n++
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0][0] == '#':
			continue
		case f[0] == "file":
			file, n, rs.template = strings.TrimSpace(line[len("file"):]), 0, ""
			continue
		case f[0] == "example":
			rs.template = strings.TrimSpace(line[len("example"):])
			continue
		}
		at := fmt.Sprintf("%s:%d", file, n)
		var err error
		if line[0] == ' ' || line[0] == '\t' {
			err = rs.addExample(rs.rules[first:], f[0], line)
		} else {
			first, err = rs.addRules(at, f)
		}
		if err != nil {
			return fmt.Errorf("parse rule at %s: %w", at, err)
		}
	}
	return nil
}

// addRules adds the rules of a line and returns the index of the first one.
func (rs *ruleset) addRules(at string, f []string) (first int, err error) {
	subjects, err := rs.add(f[0], f[1:])
	first = len(rs.rules)
	template := rs.template
	if f[0] == "token" {
		template = tokenTemplate
	}
	for _, s := range subjects {
		name := f[0] + " " + s.Rule
		if n := len(rs.rules); n == first || rs.rules[n-1].name != name {
			rs.rules = append(rs.rules, rule{name: name, at: at})
		}
		if r := &rs.rules[len(rs.rules)-1]; template != "" && s.Text != "" {
			r.hits = append(r.hits, exampleMarks.Replace(strings.ReplaceAll(template, "@", s.Text)))
		}
	}
	return first, err
}

// exampleMarks are written in examples for what a line cannot hold, and to keep
// scanners of this repository from taking an example for a secret.
var exampleMarks = strings.NewReplacer("⏎", "\n", "·", "")

// addExample adds an example to the first of the rules, which are of one line.
func (rs *ruleset) addExample(rules []rule, verb, line string) error {
	if len(rules) == 0 {
		return fmt.Errorf("an example needs a rule above it")
	}
	_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), verb+" ")
	text = exampleMarks.Replace(text)
	switch marked := strings.Contains(text, "«") && strings.Contains(text, "»"); {
	case verb == "hit" && marked:
		rules[0].hits = append(rules[0].hits, text)
	case verb == "miss" && !marked && text != "":
		rules[0].misses = append(rules[0].misses, text)
	default:
		return fmt.Errorf("want an example: \"hit\" with the secret between « and », or \"miss\" without")
	}
	return nil
}

// addOff reads "off KIND WHAT": the name of the rule to switch off.
func (rs *ruleset) addOff(f []string) error {
	name := strings.Join(f, " ")
	if !slices.ContainsFunc(rs.rules, func(r rule) bool { return r.name == name }) {
		return fmt.Errorf("no rule above is named %q; to see the names: criticizer redact --explain < FILE", name)
	}
	rs.off[name] = true
	return nil
}

// dropOff removes the rules that are switched off.
func (rs *ruleset) dropOff() {
	off := func(name string) bool { return rs.off[name] }
	rs.rules = slices.DeleteFunc(rs.rules, func(r rule) bool { return off(r.name) })
	rs.names.Drop(off)
	rs.tokens.Drop(off)
	rs.read.Drop(off)
}

// prove returns an error unless the examples of rules behave as declared: the
// rule itself masks exactly the marked secrets of its hits, and nothing of its misses.
func (e *engine) prove(rules []rule) error {
	var errs []error
	refuse := func(r rule, format string, args ...any) {
		errs = append(errs, fmt.Errorf("prove rule at %s: %q "+format, append([]any{r.at, r.name}, args...)...))
	}
	for _, r := range rules {
		if len(r.hits) == 0 {
			refuse(r, "has no \"hit\" example")
		}
		for _, hit := range r.hits {
			if got := e.maskedBy(r.name, unmarked.Replace(hit)); got != hit {
				refuse(r, "masks %q: want %q", got, hit)
			}
		}
		for _, miss := range r.misses {
			if got := e.maskedBy(r.name, miss); got != miss {
				refuse(r, "masks %q of a \"miss\" example", got)
			}
		}
	}
	return errors.Join(errs...)
}

var unmarked = strings.NewReplacer("«", "", "»", "")

// maskedBy returns text with the ranges that the named rule masks between « and ».
// A form is the place of what a name rule masks.
func (e *engine) maskedBy(name, text string) string {
	isOther := func(f judge.Span) bool { return f.Rule != name && f.Place != name }
	var spans []span
	for v := (&view{text: text}); v != nil; v = unfold(text) {
		tokens, _ := e.tokens.Scan(v.text, nil)
		of := e.read.Read(v.text, lex.Unknown, false)
		if spans = v.spans(spans, text, slices.DeleteFunc(append(of.Found, tokens...), isOther)); v.segments != nil {
			break
		}
	}
	var b strings.Builder
	at := 0
	for _, s := range merge(spans) {
		b.WriteString(text[at:s.start] + "«" + text[s.start:s.end] + "»")
		at = s.end
	}
	return b.String() + text[at:]
}

// builtinDigest is the hash of the built-in rules and lists.
var builtinDigest = func() []byte {
	h := sha256.New()
	files, _ := ruleFiles.ReadDir("rules") // an embedded directory
	for _, f := range files {
		data, _ := ruleFiles.ReadFile("rules/" + f.Name())
		h.Write(data)
	}
	h.Write(judge.Digest[:])
	return h.Sum(nil)
}()
