package redaction

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/redaction-rules.md")

// The lists of docs/redaction-rules.md are those of the rule files.
func TestDocs(t *testing.T) {
	t.Parallel()
	const name, mark = "../docs/redaction-rules.md", "<!-- written by go test ./redaction -run TestDocs -update -->\n"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(data), mark)
	if !found {
		t.Fatalf("%s lacks %q", name, mark)
	}
	want := head + mark + ruleLists(t)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(data) != want {
		t.Errorf("%s does not list the rules of redaction/rules: run go test ./redaction -run TestDocs -update", name)
	}
}

// ruleLists returns the rules as lists, a line for each class, strength or form.
func ruleLists(t *testing.T) string {
	t.Helper()
	rules, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{}
	add := func(list, format string, args ...any) {
		lists[list] = append(lists[list], "`"+fmt.Sprintf(format, args...)+"`")
	}
	for _, r := range rules.tokens {
		add("1 token "+r.class, "%s", strings.TrimPrefix(r.name, "token "))
	}
	for _, n := range rules.names {
		for word, strength := range strengths {
			if n.strength == strength {
				add("2 name "+word, "%s", n.stem)
			}
		}
	}
	for _, c := range rules.calls {
		add("3 call "+c.how, "%s", strings.TrimPrefix(c.name, "call "))
	}
	for _, f := range rules.forms {
		add("5 form", "%s", strings.TrimPrefix(f.name, "form "))
	}
	for _, c := range rules.commands {
		add("4 command "+c.how, "%s", strings.TrimPrefix(c.name, "command "))
	}
	var b strings.Builder
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		fmt.Fprintf(&b, "- %s (%d):", list[2:], len(lists[list]))
		column := 0
		for _, item := range lists[list] {
			if column += len(item) + 1; column > 150 {
				b.WriteString("\n ")
				column = len(item) + 1
			}
			b.WriteString(" " + item)
		}
		b.WriteString("\n")
	}
	return b.String()
}
