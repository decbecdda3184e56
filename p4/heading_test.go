package p4

import (
	"strings"
	"testing"
)

func TestHeadings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, text, want string }{
		"Go":             {"a.go", "package p\n\nfunc (s *S) Run(x int) error {\n\tif x {", "func (s *S) Run(x int) error {"},
		"C":              {"a.c", "#include <x.h>\n\nint main(int argc)\n{\nout:\n\tint x;", "int main(int argc)"},
		"C++ of Unreal":  {"a.cpp", "void AHero::Tick(float Delta)\n{\n\tSuper::Tick(Delta);", "void AHero::Tick(float Delta)"},
		"Python":         {"a.py", "class A:\n    x = 1\n    async def go(self):\n        for x in y:", "async def go(self):"},
		"C#":             {"a.cs", "namespace N {\n  class A {\n    public async Task<int> Go(int x)\n    {\n      if (x) {", "public async Task<int> Go(int x)"},
		"TypeScript":     {"a.ts", "export class A {\n  go(x: number): string {\n    for (const a of b) {", "go(x: number): string {"},
		"SQL":            {"a.sql", "-- x\nCREATE TABLE t (\n  a int,", "CREATE TABLE t ("},
		"Verilog":        {"a.sv", "module core(input clk);\n  always_ff @(posedge clk) begin\n    q <= d;", "always_ff @(posedge clk) begin"},
		"VHDL":           {"a.vhd", "architecture rtl of core is\nbegin\n  sync : process (clk)\n  begin", "sync : process (clk)"},
		"plain text":     {"a.txt", "  indented\n\n  more", ""},
		"no extension":   {"Jamfile", "Main jam : jam.c ;\nrule Build\n{\n  x", "rule Build"},
		"a long heading": {"a.go", "func F(" + strings.Repeat("é", 200) + ")\n\tx", "func F(" + strings.Repeat("é", 200) + ")"},
		"a line of data": {"a.go", "func F()\nvar x = \"" + strings.Repeat("y", 2000) + "\"\n\tz", "func F()"},
	} {
		lines := splitLines(tt.text + "\n")
		h := headings{is: headingsOf("//depot/" + tt.file), lines: lines}
		if got := strings.TrimPrefix(h.above(len(lines)), " "); got != tt.want {
			t.Errorf("%s: heading %q, want %q", name, got, tt.want)
		}
	}
}

func TestHunksHaveTheHeadingAboveThem(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("\tx()\n", 8)
	before := "func A() {\n" + body + "}\nfunc B() {\n" + body + "}\n"
	after := strings.Replace(before, "func B() {\n\tx()\n\tx()\n\tx()\n\tx()\n", "func B() {\n\tx()\n\tx()\n\tx()\n\ty()\n", 1)
	after = "// new\n" + after
	want := "@@ -1,2 +1,3 @@\n+// new\n func A() {\n \tx()\n@@ -13,5 +14,5 @@ func B() {\n"
	if got := unified(before, after, 2, headingsOf("a.go")); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to begin\n%s", got, want)
	}
}
