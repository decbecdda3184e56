package redaction

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// ruleFiles are the built-in rules. docs/redaction.md describes their format.
//
//go:embed rules/*.rules
var ruleFiles embed.FS

//go:embed words.txt
var wordsFile string

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
	rules    []rule
	tokens   []tokenRule
	names    []nameStem
	commands []command
	calls    []function
	forms    []formRule
	// classes has the classes of placeholders.
	classes map[string]bool
	// off has the names of the rules that are switched off.
	off map[string]bool
	// template is the example of the rules without examples of their own. @ is replaced
	// by a subject.
	template string
}

// A ruleParser reads the fields of a line after the kind into the ruleset. It
// returns the rules of the line: a line may have several.
type ruleParser func(rs *ruleset, fields []string) ([]named, error)

// A named is the name of a rule, without its kind, and the subjects that replace @ in the
// examples of all rules below an "example" line.
type named struct {
	name     string
	subjects []string
	// template replaces the text of the "example" line. It may be empty.
	template string
}

// ruleKinds are the kinds of rules by the first word of their line.
var ruleKinds = map[string]ruleParser{
	"token":   parseToken,
	"name":    parseName,
	"call":    parseCall,
	"command": parseCommand,
	"form":    parseForm,
	"off":     parseOff,
}

// builtinRules parses the rules of this package.
func builtinRules() (*ruleset, error) {
	rs := &ruleset{off: map[string]bool{}, classes: maps.Clone(lists["classes"])}
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
		if blankSet.has(line[0]) {
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
	parse, ok := ruleKinds[f[0]]
	if !ok {
		return 0, fmt.Errorf("the kind %q is unknown: want token, name, call, command, form, off, example or file", f[0])
	}
	rules, err := parse(rs, f[1:])
	first = len(rs.rules)
	for _, n := range rules {
		r := rule{name: f[0] + " " + n.name, at: at}
		template := cmp.Or(n.template, rs.template)
		for _, subject := range n.subjects {
			if template != "" {
				r.hits = append(r.hits, exampleMarks.Replace(strings.ReplaceAll(template, "@", subject)))
			}
		}
		rs.rules = append(rs.rules, r)
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

// parseOff reads "off KIND WHAT": the name of the rule to switch off.
func parseOff(rs *ruleset, f []string) ([]named, error) {
	name := strings.Join(f, " ")
	if !slices.ContainsFunc(rs.rules, func(r rule) bool { return r.name == name }) {
		return nil, fmt.Errorf("no rule above is named %q: criticizer redact --explain prints the names", name)
	}
	rs.off[name] = true
	return nil, nil
}

// dropOff removes the rules that are switched off.
func (rs *ruleset) dropOff() {
	off := func(name string) bool { return rs.off[name] }
	rs.rules = slices.DeleteFunc(rs.rules, func(r rule) bool { return off(r.name) })
	rs.tokens = slices.DeleteFunc(rs.tokens, func(t tokenRule) bool { return off(t.name) })
	rs.names = slices.DeleteFunc(rs.names, func(n nameStem) bool { return off("name " + n.stem) })
	rs.commands = slices.DeleteFunc(rs.commands, func(c command) bool { return off(c.name) })
	rs.forms = slices.DeleteFunc(rs.forms, func(f formRule) bool { return off(f.name) })
	rs.calls = slices.DeleteFunc(rs.calls, func(f function) bool { return off(f.name) })
}

// firstExamples returns the first example of each rule that has one, by its name.
func firstExamples(rules []rule) map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		if _, known := out[r.name]; !known && len(r.hits) > 0 {
			out[r.name] = r.hits[0]
		}
	}
	return out
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
	c := collector{raw: text}
	e.read([]*view{whole(text)}, masking, func(d *detector) {
		c.take(d.view, slices.DeleteFunc(d.detections, func(f detection) bool { return f.rule != name && f.place != name }))
	})
	var b strings.Builder
	at := 0
	for _, s := range c.finish() {
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
	h.Write([]byte(wordsFile))
	return h.Sum(nil)
}()
