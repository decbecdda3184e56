package redaction

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/redaction/internal/judge"
)

// The examples of every built-in rule behave as declared (security 9.5.4).
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	e, err := newEngine(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.prove(e.rules); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, r := range e.rules {
		if names[r.name] {
			t.Errorf("%s: a second rule is named %q", r.at, r.name)
		}
		names[r.name] = true
	}
}

// A placeholder of a class that is not listed would be read as text when it is redacted again.
func TestClassesOfTheCodeAreListed(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	found := 0
	for _, pattern := range []string{"internal/token/*.go", "internal/read/*.go", "internal/judge/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?:\.(?:report|scheme)(?:After\("[^"]*", |\()|Class: )"([^"]+)"`).FindAllSubmatch(source, -1) {
				if found++; !p.engine.names.Classes[string(m[1])] {
					t.Errorf("%s: class %q is not in the list [classes] of words.txt", name, m[1])
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d classes in the code: want at least 15", found)
	}
	for _, ident := range append(slices.Clone(judge.Heads("class")), "other") {
		for _, strength := range []judge.Strength{judge.Vendor, judge.Weak, judge.Medium, judge.Strong} {
			if class := (judge.Name{Ident: ident, Strength: strength}).Class(); !p.engine.names.Classes[class] {
				t.Errorf("class %q of the name %s is not in the list [classes] of words.txt", class, ident)
			}
		}
	}
}

func TestInvalidRulesAreRejected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rules, want string }{
		"unknown kind":                   {"tokens corp corp_{alnum:20}", "kind"},
		"a shape of no charset":          {"token corp corp_{letters:20} corp_x", "shape"},
		"a shape of no length":           {"token corp corp_{alnum:many} corp_x", "shape"},
		"a shape of only a short word":   {"token corp corp corp", "shape"},
		"an unknown check":               {"token corp corp_{alnum:20} check=md4 corp_x", "check"},
		"a class that is not a word":     {"token Corp_Token corp_{alnum:20} corp_x", "class"},
		"an example of another shape":    {"token corp corp_{alnum:20} corp_x", "prove"},
		"an unknown strength":            {"name firm corp_pin\n hit corp_pin = \"«Fj0rdWater9»\"", "strength"},
		"a rule without an example":      {"name strong corp_pin", "hit"},
		"a hit that is masked elsewhere": {"name strong corp_pin\n hit password = \"«Fj0rdWater9»\"", "prove"},
		"a hit that marks too much":      {"name strong corp_pin\n hit corp_pin = «\"Fj0rdWater9\"»", "prove"},
		"a miss that is masked":          {"name strong corp_pin\n hit corp_pin = \"«Fj0rdWater9»\"\n miss corp_pin = \"Tulip7garden\"", "miss"},
		"an example without a rule":      {" hit corp_pin = \"«Fj0rdWater9»\"", "above"},
		"a hit without marks":            {"name strong corp_pin\n hit corp_pin", "example"},
		"a command without flags":        {"command flag corp -p", "command"},
		"a command of an unknown form":   {"command any corp : -p", "command"},
		"a call without an argument":     {"call plain login(", "ARGUMENT"},
		"a call of an unknown form":      {"call 1 any login(", "HOW"},
		"a form of an unknown binding":   {"form tied NAME = VALUE", "binding"},
		"a form without a value":         {"form assigned NAME =", "VALUE"},
		"a form of an unknown list":      {"form assigned @verbs(NAME, VALUE", "list"},
		"a form of too many elements":    {"form assigned NAME a b c d e f g h i j k l m n o p q r s t VALUE", "elements"},
		"switching off what is not":      {"off name pasvord", "named"},
	} {
		if _, err := newEngine(Config{Rules: "file corp.rules\n" + c.rules + "\n"}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "corp.rules:") {
			t.Errorf("%s: got error %v, want one that names corp.rules and %q", name, err, c.want)
		}
	}
}

func TestRulesOfAUser(t *testing.T) {
	t.Parallel()
	const own = "token corp-token corp_{alnum:20+} corp_·9tMDf9jQ5vxV1UN1qKy88ySi\n" +
		"name strong losung\n hit losung = \"«Fj0rdWater9»\"\n miss losung = os.getenv(\"X\")\n" +
		"call 1 plain unlock(\n hit unlock(door, \"«Fj0rdWater9»\")\n" +
		"command flag corpctl : --pin\n hit corpctl --pin «Fj0rdWater9»\n" +
		"form assigned seal NAME using VALUE\n hit seal password using «Fj0rdWater9»\n miss seal password using ${PW}\n" +
		"off call 1 basicauth(\n"
	p := newTestPipeline(t, Config{Rules: own})
	for text, masked := range map[string]bool{
		"x corp_" + alnum40:                 true,
		`losung: "Fj0rdWater9"`:             true,
		`unlock(door, "Fj0rdWater9")`:       true,
		`corpctl --pin Fj0rdWater9 now`:     true,
		`seal the_passwd using Fj0rdWater9`: true,
		`basicauth(x, "Fj0rdWater9")`:       false,
		`.login(x, "Fj0rdWater9")`:          true,
	} {
		if got := redacted(t, p, text) != text; got != masked {
			t.Errorf("%q: masked is %t, want %t", text, got, masked)
		}
	}
	if p.Version() == newTestPipeline(t, Config{}).Version() {
		t.Error("own rules do not change the version")
	}
	across := newTestPipeline(t, Config{Rules: "command flag corp\" : --pin\n hit run corp\" --pin «Fj0rdWater9»\n"})
	if got := redacted(t, across, `x = "a password, corp" --pin Fj0rdWater9`); strings.Contains(got, "Fj0rd") {
		t.Errorf("a command across the end of a literal gives %q", got)
	}
}
