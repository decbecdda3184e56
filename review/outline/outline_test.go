package outline

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/criticizer/criticizer/internal/testkit"
)

var update = flag.Bool("update", false, "write the outlines of the examples")

const examples = "testdata/examples.txtar"

func show(o Outline) string {
	var out strings.Builder
	for _, i := range o.Imports {
		fmt.Fprintf(&out, "%d-%d import %q\n", i.First, i.Last, i.Text)
	}
	for _, d := range o.Definitions {
		kind := map[Kind]string{Function: "function", Type: "type", Value: "value"}[d.Kind]
		fmt.Fprintf(&out, "%d-%d %s %q body %d\n", d.First, d.Last, kind, d.Name, d.Body)
	}
	return out.String()
}

// Each language of languages.txt has an example, which its grammar reads.
func TestExamples(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile(examples)
	testkit.NoError(t, err)
	p, missing := newParser(t.TempDir()), map[*language]bool{}
	for _, l := range languages {
		missing[l] = true
	}
	for i := 0; i+1 < len(a.Files); i += 2 {
		name, text := a.Files[i].Name, string(a.Files[i].Data)
		if l := languageOf(name); l != nil {
			delete(missing, l)
			if _, err := p.parse(t.Context(), l, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		got := show(Of(t.Context(), name, text))
		if *update {
			a.Files[i+1].Data = []byte(got)
		} else if want := string(a.Files[i+1].Data); got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
	for l := range missing {
		t.Errorf("%s has no example", l.name)
	}
	if *update {
		testkit.NoError(t, os.WriteFile(examples, txtar.Format(a), 0o600))
	}
}

// A hostile text ends within the limits, and the parser continues.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"brackets":    strings.Repeat("(", 1<<20),
		"no text":     strings.Repeat("\x00\xff\xfe", 1<<16),
		"too large":   strings.Repeat("int x;\n", 1<<20),
		"nothing":     "",
		"macro lines": strings.Repeat("#define A(x) (x\n#if A\n", 1<<15),
	} {
		Of(t.Context(), "a.c", text)
		if o := Of(t.Context(), "a.c", "int f(void) { return 1; }\n"); len(o.Definitions) != 1 {
			t.Errorf("after %s: got %v", name, o.Definitions)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := shared().parse(stopped, languageOf("a.c"), "int x;"); err == nil {
		t.Error("a parse goes on after the end of its context")
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for _, name := range []string{"a.go", "a.py", "a.c"} {
				Of(t.Context(), name, "x = 1\n")
			}
		})
	}
	running.Wait()
}

func TestEnclosing(t *testing.T) {
	t.Parallel()
	text := "class A:\n    def f(self):\n        def g():\n            return 1\n        return g\n    x = 1\ndef h():\n    return 2\n"
	o := Of(t.Context(), "a.py", text)
	for _, tt := range []struct {
		line, lines int
		want        string
	}{{4, 100, "f"}, {4, 2, "g"}, {4, 1, "g"}, {6, 100, "A"}, {8, 100, "h"}, {9, 100, ""}} {
		if d, _ := o.Enclosing(tt.line, tt.lines); d.Name != tt.want {
			t.Errorf("line %d, up to %d lines: got %q, want %q", tt.line, tt.lines, d.Name, tt.want)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a.c", "int f(void) { return g(1); }\n#define X(a) a\n")
	f.Add("a.py", "class A:\n\tdef f(self): pass\n")
	f.Add("a.cpp", "UCLASS(a(b)) class X_API A : B { GENERATED_BODY() };")
	f.Add("a.txt", "head\n body\nend\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, d := range Of(t.Context(), name, text).Definitions {
			if d.First < 1 || d.Last < d.First || d.Last > lines || d.Body < d.First || d.Body > d.Last {
				t.Errorf("%+v in %d lines", d, lines)
			}
		}
	})
}
