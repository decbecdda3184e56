package outline

import (
	"slices"
	"strings"
	"testing"
)

// Of each text, what skim leaves out is marked with ~ at the end of the line.
func TestSkim(t *testing.T) {
	t.Parallel()
	for name, marked := range map[string]string{
		"a function":              "int f(int x) {\n  a; ~\n#if B ~\nend: ~\n}\nint g(void)\n{\n  b; ~\n}\n",
		"the changed one":         "int f(int x)\n{\n  changed;\n}\nint g() {\n  a; ~\n}\n",
		"a type with brackets":    "class A(val x: Int) {\n  fun f() {\n  }\n}\nstruct S AT(4) {\n  int x;\n};\n",
		"no function":             "namespace a {\n  int f() {\n  }\n}\n",
		"a brace in a raw string": "func f() {\n\tx(`\n}\n`)\n}\nfunc g() {\n\ta ~\n}\n",
		"a brace in a comment":    "int f() {\n  /*\n}\n  */\n}\n",
		"a comment":               "/* a ~\n * b ~\n */ ~\nint x; /* c\n*/\n/* d */ int y; /* e */\n",
		"a table":                 "int t[] = {\n  1, ~\n  2, ~\n};\nvar f = {\n  g() {\n  }\n};\n",
		"without an end":          "int f() {\n  a;\n",
	} {
		text := strings.ReplaceAll(marked, " ~\n", "\n")
		changed := slices.IndexFunc(strings.Split(text, "\n"), func(l string) bool { return strings.Contains(l, "changed") }) + 1
		var want strings.Builder
		for line := range strings.Lines(marked) {
			if strings.HasSuffix(line, " ~\n") {
				line = "\n"
			}
			want.WriteString(line)
		}
		if got := skim(text, []int{changed}); got != want.String() {
			t.Errorf("%s: got\n%swant\n%s", name, got, want.String())
		}
	}
}

// The definitions at the margin are the same as with the bodies, and those around a changed line.
func TestAround(t *testing.T) {
	t.Parallel()
	const text = "package a\n\nfunc f() {\n\tx := 1\n}\n\nfunc g() int {\n\treturn y\n}\n"
	whole, around := Of(t.Context(), "a.go", text), Around(t.Context(), "a.go", text, []int{8})
	if show(around) != show(whole) || len(whole.Definitions) != 2 {
		t.Errorf("got\n%swant\n%s", show(around), show(whole))
	}
	if around.Names[4] != nil || !slices.Equal(around.Names[8], []string{"y"}) {
		t.Errorf("names %v", around.Names)
	}
}
