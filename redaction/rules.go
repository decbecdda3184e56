package redaction

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// builtinRules are the rules of this package. docs/redaction.md describes their format.
var builtinRules = func() (all string) {
	for _, f := range must(ruleFiles.ReadDir("rules")) {
		all += fmt.Sprintf("file %s\n%s\n", f.Name(), must(ruleFiles.ReadFile("rules/"+f.Name())))
	}
	return all
}()

//go:embed rules/*.rules
var ruleFiles embed.FS

// must returns what was read of an embedded directory, which has no errors.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A rule is what all kinds of rules have in common: a name and examples.
type rule struct {
	// name is the kind and what the rule matches, such as "call basicauth(".
	name string
	// at is the file and the line, for errors.
	at string
	// In hits, the secret is between « and ». misses stay as they are.
	hits, misses []string
}

// tokenTemplate is the example of every token rule.
const tokenTemplate = "key = \"«@»\"⏎see «@» there" //nolint:gosec // no credential

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

// parse adds rules. A line that begins in the first column is a rule, or several; the indented lines below it
// are the examples of the first. A line "example TEXT" sets the example of the rules below it, in which @ is
// replaced by a subject. A line "file NAME" sets the name of the file that the lines after it come from.
func (e *engine) parse(data string) error {
	file, template, first, n := "rules", "", len(e.rules), 0
	for line := range strings.Lines(data) {
		n++
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0][0] == '#':
			continue
		case f[0] == "file":
			file, n, template = strings.TrimSpace(line[len("file"):]), 0, ""
			continue
		case f[0] == "example":
			template = strings.TrimSpace(line[len("example"):])
			continue
		}
		at := fmt.Sprintf("%s:%d", file, n)
		var err error
		if line[0] == ' ' || line[0] == '\t' {
			err = addExample(e.rules[first:], f[0], line)
		} else {
			first = len(e.rules)
			err = e.addRules(at, template, f[0], f[1:])
		}
		if err != nil {
			return fmt.Errorf("parse rule at %s: %w", at, err)
		}
	}
	return nil
}

// addRules adds the rules of a line with the fields f after the kind.
func (e *engine) addRules(at, template, kind string, f []string) error {
	var subjects []judge.Subject
	var err error
	switch kind {
	case "token":
		template = tokenTemplate
		subjects, err = e.tokens.Add(f)
	case "name":
		subjects, err = e.names.Add(f)
	case "call":
		subjects, err = e.read.AddCall(f)
	case "command":
		subjects, err = e.read.AddCommand(f)
	case "form":
		subjects, err = e.read.AddForm(f)
	case "off":
		name := strings.Join(f, " ")
		if !slices.ContainsFunc(e.rules, func(r rule) bool { return r.name == name }) {
			return fmt.Errorf("no rule above is named %q; to see the names: criticizer redact --explain < FILE", name)
		}
		e.off[name] = true
	default:
		return fmt.Errorf("the kind %q is unknown: want token, name, call, command, form, off, example or file", kind)
	}
	first := len(e.rules)
	for _, s := range subjects {
		name := kind + " " + s.Rule
		if n := len(e.rules); n == first || e.rules[n-1].name != name {
			e.rules = append(e.rules, rule{name: name, at: at})
		}
		if r := &e.rules[len(e.rules)-1]; template != "" && s.Text != "" {
			r.hits = append(r.hits, exampleMarks.Replace(strings.ReplaceAll(template, "@", s.Text)))
		}
	}
	return err
}

// exampleMarks are written in examples for what a line cannot hold, and to keep
// scanners of this repository from taking an example for a secret.
var exampleMarks = strings.NewReplacer("⏎", "\n", "·", "")

// addExample adds an example to the first of the rules, which are of one line.
func addExample(rules []rule, verb, line string) error {
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
	for _, v := range viewsOf(text) {
		of := e.detect(v.text, e.hits(v.text, nil, nil), lex.Unknown, false, nil)
		spans = v.spans(spans, text, slices.DeleteFunc(of.Found, isOther))
	}
	var b strings.Builder
	at := 0
	for _, s := range merge(spans) {
		b.WriteString(text[at:s.start] + "«" + text[s.start:s.end] + "»")
		at = s.end
	}
	return b.String() + text[at:]
}
