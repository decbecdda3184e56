package fix

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/review"
)

// diffOf returns the diff of an added file.
func diffOf(text string) string {
	return "@@ -0,0 +1,99 @@\n+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n"
}

const goFile = "package a\n\nfunc f(q *queue) int {\n\tq.mu.Lock()\n\tif q.n == 0 {\n\t\treturn -1\n\t}\n\treturn q.pop()\n}\n"

// Each case replaces the line that holds the quote. A replacement that lies is dropped.
func TestCheck(t *testing.T) {
	t.Parallel()
	const jsonFile, yamlFile = "{\n  \"a\": [1, 2],\n  \"b\": 3,\n  \"c\": 4\n}\n", "a:\n  b: 1\n  c: [1, 2]\nd:\n  - e\n"
	const xmlFile, cFile = "<a>\n  <b x=\"1\"/>\n  <c>text</c>\n</a>\n", "int f(void)\n{\n    int n = g();\n    return n;\n}\n"
	part := "@@ -40,3 +40,4 @@ func g() {\n \tif a {\n \t\tb()\n+\t\tc()\n \t}\n"
	for name, tc := range map[string]struct {
		path, diff, quote, replacement string
		want                           review.DropReason
	}{
		"Go":                             {"//d/a.go", diffOf(goFile), "\t\treturn -1", "\t\tq.mu.Unlock()\n\t\treturn -1", ""},
		"Go, several lines":              {"//d/a.go", diffOf(goFile), "\tif q.n == 0 {\n\t\treturn -1\n\t}", "\tif q.n == 0 {\n\t\tpanic(q)\n\t}", ""},
		"Go, a part of a file":           {"//d/a.go", part, "\t\tc()", "\t\tc()\n\t\td()", ""},
		"JSON":                           {"//d/a.json", diffOf(jsonFile), `  "b": 3,`, `  "b": "3",`, ""},
		"JSON, a part":                   {"//d/a.json", "@@ -4,2 +4,3 @@\n   \"x\": 1,\n+  \"y\": 2,\n   \"z\": 3,\n", `  "y": 2,`, `  "y": null,`, ""},
		"YAML":                           {"//d/a.yml", diffOf(yamlFile), "  c: [1, 2]", "  c: [1]\n  f: 2", ""},
		"XML":                            {"//d/a.xml", diffOf(xmlFile), "  <c>text</c>", "  <c>other</c>\n  <d/>", ""},
		"C":                              {"//d/a.c", diffOf(cFile), "    int n = g();", "    int n = h();", ""},
		"CRLF":                           {"//d/a.c", diffOf(strings.ReplaceAll(cFile, "\n", "\r\n")), "    int n = g();", "    int n = g();\n    check(n);", ""},
		"CRLF as it is":                  {"//d/a.c", diffOf(strings.ReplaceAll(cFile, "\n", "\r\n")), "    int n = g();", "    int n = g();\r\n    check(n);\r", ""},
		"another quote":                  {"//d/a.c", diffOf(cFile), "    int n = h();", "    int n = 0;", review.DropFixPlace},
		"lines that are not shown":       {"//d/a.go", part, "\t\tc()\n\t}\n\td()\n\te()", "\t\tc()", review.DropFixPlace},
		"CRLF in a file with LF":         {"//d/a.c", diffOf(cFile), "    int n = g();", "    int n = g();\r\n    check(n);", review.DropFixShape},
		"no indentation":                 {"//d/a.go", diffOf(goFile), "\t\treturn -1", "return -1", review.DropFixShape},
		"blanks for tabs":                {"//d/a.go", diffOf(goFile), "\t\treturn -1", "\t\tq.stop(\n            1)\n\t\treturn -1", review.DropFixShape},
		"tabs for blanks":                {"//d/a.c", diffOf(cFile), "    int n = g();", "    int n = g();\n\tcheck(n);", review.DropFixShape},
		"with the line before":           {"//d/a.go", diffOf(goFile), "\tif q.n == 0 {\n\t\treturn -1\n\t}", "\tq.mu.Lock()\n\tif q.n == 0 {\n\t\treturn 0\n\t}", review.DropFixOther},
		"with a copy of the lines after": {"//d/a.go", diffOf(goFile), "\tq.mu.Lock()", "\tq.mu.Lock()\n\tif q.n == 0 {\n\t\treturn 0\n\t}", review.DropFixOther},
		"with the line after":            {"//d/a.c", diffOf(cFile), "    int n = g();", "    int n = h();\n    return n;", review.DropFixOther},
		"the same lines":                 {"//d/a.c", diffOf(cFile), "    int n = g();", "    int n = g();", review.DropNoChange},
		"a secret":                       {"//d/a.c", diffOf(cFile), "    int n = g();", `    int n = g("SECRET");`, review.DropFixSecret},
		"a secret by the lines around":   {"//d/a.c", diffOf(cFile), "    int n = g();", "    VALUE = g();", review.DropFixSecret},
		"a placeholder":                  {"//d/a.c", diffOf(cFile), "    int n = g();", `    int n = g("[REDACTED:token:1]");`, review.DropFixSecret},
		"an open bracket in C":           {"//d/a.c", diffOf(cFile), "    int n = g();", "    if (g()) {", review.DropFixSyntax},
		"no Go":                          {"//d/a.go", diffOf(goFile), "\t\treturn -1", "\t\treturn minus one", review.DropFixSyntax},
		"no Go in a part of a file":      {"//d/a.go", part, "\t\tc()", "\t\tc() and d()", review.DropFixSyntax},
		"no JSON":                        {"//d/a.json", diffOf(jsonFile), `  "b": 3,`, `  "b": 3`, review.DropFixSyntax},
		"no JSON in a part of a file":    {"//d/a.json", "@@ -4,2 +4,3 @@\n   \"x\": 1,\n+  \"y\": 2,\n   \"z\": 3,\n", `  "y": 2,`, `  "y": two,`, review.DropFixSyntax},
		"no YAML":                        {"//d/a.yml", diffOf(yamlFile), "  c: [1, 2]", "  c\n  f: 2", review.DropFixSyntax},
		"no XML":                         {"//d/a.xml", diffOf(xmlFile), "  <c>text</c>", "  <c>text</d>", review.DropFixSyntax},
		"Go that does not parse yet":     {"//d/a.go", diffOf("package a\n\nvar x = 1 +\n"), "var x = 1 +", "var x = 1", ""},
	} {
		f := review.Finding{Path: tc.path, Quote: tc.quote, Replacement: tc.replacement}
		known := Read(tc.diff)
		for n := range 99 {
			if strings.TrimRight(known[n], "\r") == strings.Split(tc.quote, "\n")[0] {
				f.StartLine = n
			}
		}
		if f.StartLine == 0 {
			f.StartLine = 3
		}
		f.EndLine = f.StartLine + strings.Count(tc.quote, "\n")
		got, why := known.Check(f, func(s string) int {
			return strings.Count(s, "SECRET") + strings.Count(s, "{\n    VALUE") + strings.Count(s, "[REDACTED")
		})
		if why != tc.want || got.ReplacementChecked != (why == "") || (got.Replacement == "") != (why != "") {
			t.Errorf("%s: %q, %+v, want %q", name, why, got, tc.want)
		}
		if crs := strings.Count(got.Replacement, "\r\n"); strings.HasPrefix(name, "CRLF as") && crs != 1 || strings.Contains(got.Quote, "\r") {
			t.Errorf("%s: %d CRLF in %q", name, crs, got.Replacement)
		}
	}
	if got, why := (Text{}).Check(review.Finding{StartLine: 1}, nil); why != "" || got.ReplacementChecked {
		t.Errorf("a finding without replacement: %q, %+v", why, got)
	}
}

// The memory of the parser of YAML grows with the square of the depth.
func TestHostileYAMLTakesLittleMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parsesYAML(strings.Repeat("[", 20_000))
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
		t.Errorf("it takes %d MB", used)
	}
}

// A part may begin and end at any line of this text, and none parses.
func TestPartsAreParsedInShortTime(t *testing.T) {
	t.Parallel()
	text := Read(diffOf(strings.Repeat("var a = (1 +\n", maxShown) + "  x = 1\n" + strings.Repeat("})\n", maxShown)))
	finding := review.Finding{Path: "//d/a.go", StartLine: maxShown + 1, EndLine: maxShown + 1, Quote: "  x = 1", Replacement: "  x = 2"}
	if used := cputest.Time(func() { text.Check(finding, func(string) int { return 0 }) }); used > 2*time.Second {
		t.Errorf("it takes %s", used)
	}
}

// Blocks of context beside the hunks are read with them.
func TestContextCompletesTheText(t *testing.T) {
	t.Parallel()
	known := Read("@@ -6,1 +6,1 @@\n-\t\treturn 0\n+\t\treturn -1\n")
	known.Add(3, "func f(q *queue) int {\n\tq.mu.Lock()\n\tif q.n == 0 {\n")
	known.Add(7, "\t}\n\treturn q.pop()\n}\n")
	for replacement, want := range map[string]review.DropReason{"\t\tgoto end": "", "\t\treturn -1 else": review.DropFixSyntax} {
		f := review.Finding{Path: "//d/a.go", StartLine: 6, EndLine: 6, Quote: "\t\treturn -1", Replacement: replacement}
		if _, why := known.Check(f, func(string) int { return 0 }); why != want {
			t.Errorf("%q: %q, want %q", replacement, why, want)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	f := review.Finding{Quote: "a\nb\nc\nc", Replacement: "a\r\nB\r\nc", ReplacementChecked: true}
	want := []Line{{' ', "a"}, {'-', "b"}, {'-', "c"}, {'+', "B"}, {' ', "c"}}
	if got := Diff(f); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if f.ReplacementChecked = false; Diff(f) != nil {
		t.Error("a replacement that is not checked is shown")
	}
}

// No text panics, and an applied replacement leaves the other lines as they are.
func FuzzCheck(f *testing.F) {
	f.Add("a.go", diffOf(goFile), "\t\treturn -1", 6)
	f.Add("a.yaml", "@@ -1 +1 @@\n+a: [", "b", 1)
	f.Add("0", "\n \r0", "0", 1) // a carriage return within the line
	f.Fuzz(func(t *testing.T, path, diff, replacement string, line int) {
		known := Read(diff)
		finding := review.Finding{Path: path, StartLine: line, EndLine: line, Quote: strings.TrimRight(known[line], "\r"), Replacement: replacement}
		if got, why := known.Check(finding, func(string) int { return 0 }); why == "" && got.ReplacementChecked && (indent(got.Replacement) != indent(known[line]) || Diff(got) == nil) {
			t.Errorf("%+v", got)
		}
	})
}
