package read

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// documents are texts and their values, one per line: path = value, where a dot joins the names of a path, - is
// an element of a list, and <> encloses a value that is not in quotes.
var documents = []struct{ file, name, text, want string }{
	{"a.yaml", "scalars", "a: b\nc: 'd e'\ne: \"f\"\ng: 7 # x\n", `
		a = <b>
		c = d e
		e = f
		g = <7>`},
	{"a.yaml", "nested", "passwords:\n  bob: x1\n  list:\n    - y2\n    - name: z3\n", `
		passwords.bob = <x1>
		passwords.list.- = <y2>
		passwords.list.-.name = <z3>`},
	{"a.yaml", "flow", "users: [{user: derek, password: foo}, 'x']\n", `
		users.-.user = derek
		users.-.password = foo
		users.- = x`},
	{"a.yaml", "documents", "a: 1\n---\nb: 2\n--- # c\nc: 3\n...\n", `
		a = <1>
		b = <2>
		c = <3>`},
	{"a.yaml", "one document does not parse", "a: 1\n---\nb: [\n---\nc: 3\n", `
		a = <1>
		b.c = 3`},
	{"a.yaml", "CRLF and umlauts", "ä: ü\r\nbß: 'é' # ñ\r\nc:\r\n  - ö\r\n", `
		ä = <ü>
		bß = é
		c.- = <ö>`},
	{"a.yaml", "block scalars", "a: |\n  one\n  two\nb: >-\n\n  three\n\n  four\nc: |2 # x\n   five\nd: 1\n", `
		a = <one two>
		b = <three four>
		c = <five>
		d = <1>`},
	{"a.yaml", "anchors, tags and aliases", "a: &x !!str secret\nb: *x\nc: &y\n  d: 1\ne:\n  <<: *y\nf: !vault |\n  abc\n", `
		a = <secret>
		b = <secret>
		c.d = <1>
		f = <abc>`},
	{"a.yaml", "several lines", "a: one\n  two\nb: \"three\n  four\"\nc: 'it''s'\n", `
		a = <one>
		a = <two>
		b = three four
		c = it''s`},
	{"a.yaml", "templates", "{{- if .Values.x }}\na: {{ .Values.a | quote }}\nb: \"{{ .Values.b | default \"x\" }}\"\n{{- end }}\nc: {{ .r }}:{{ .t }}\n{{ include \"labels\" . | nindent 4 }}\nd: <%= x %>\n", `
		a = <{{ .Values.a | quote }}>
		b = {{ .Values.b | default
		c = <{{ .r }}:{{ .t }}>
		d = <<%= x %>>`},
	{"a.yaml", "byte order mark", "\ufeffa: b\nc: d\n", `
		a = <b>
		c = <d>`},
	{"a.yaml", "not YAML", "a: b: c: [\n", `
		a = <b: c: [>`},
	{"a.json", "nested", `{"a": {"b": ["x", 1, {"c": "y"}]}, "d": null}`, `
		-.a.b.- = x
		-.a.b.- = <1>
		-.a.b.-.c = y
		-.d = <null>`},
	{"a.json", "comments and trailing commas", "// {\n{\"a\": /* \"b\" */ \"c\", // \"\n \"d\": [1,],}\n", `
		-.a = c
		-.d.- = <1>`},
	{"a.json", "lines", "{\"a\": \"x\"}\n{\"a\": \"y\"}\n\n[2]\n", `
		-.a = x
		-.a = y
		-.- = <2>`},
	{"a.json", "a line that does not parse", "{\"a\": \"x\"}\n{a: y}\n{\"a\": \"z\"}\n", `
		-.a = x
		-.a = <y>
		-.a = z`},
	{"a.json", "escapes", `{"a\u0062": "x\"y\\", "c": "}"}`, `
		-.a\u0062 = x\"y\\
		-.c = }`},
	{"a.json", "cut in a string", `{"a": {"b": "x", "c": "y`, `
		-.a.b = x
		-.a.c = y`},
	{"a.json", "cut behind a member", `{"a": ["x",`, `
		-.a.- = x`},
	{"a.json", "cut in a name", `{"a": "x", "b": `, `
		-.a = x`},
	{"a.json", "scalar", ` "x" `, `
		- = x`},
	{"a.json", "umlauts and CRLF", "{\r\n\"ä\": \"ü\",\r\n\"b\": \"é\"\r\n}\r\n", `
		-.ä = ü
		-.b = é`},
	{"a.toml", "tables", "a = 'x'\n[b.c]\nd = \"y\" # z\n[[e]]\nf = 1\n[[e]]\nf = 2\n", `
		a = x
		b.c.d = y
		e.f = <1>
		e.f = <2>`},
	{"a.toml", "values", "a.b = [ 'x', # c\n  {c = 1.5, d.e = true}]\nf = 2026-01-02\ng = \"\"\"\none\ntwo\"\"\"\nh = '''x'''\n\"i j\" = \"q\\\"r\"\n", `
		b.- = x
		b.-.c = <1.5>
		b.-.e = <true>
		f = <2026-01-02>
		g = one two
		h = x
		i j = q\"r`},
	{"a.toml", "CRLF", "a = 'ü'\r\nb = 'x'\r\n", `
		a = ü
		b = x`},
	{"a.toml", "a line that does not parse", "a = 'x'\nb = y\n", `
		a = x
		b = <y>`},
	{"a.tf", "blocks and attributes", "variable \"db\" {\n  default   = \"x\" # c\n  sensitive = true\n}\na = [\"y\", 1]\nb = { c = \"z\", \"d\" : null }\n", `
		- = db
		variable.db.default = x
		variable.db.sensitive = <true>
		a.- = y
		a.- = <1>
		b.c = z
		b.d = <null>`},
	{"a.tf", "expressions", "p = coalesce(var.p, \"x\")\nq = var.q == \"\" ? \"y\" : var.q\nr = \"${var.a}-z\"\ns = jsonencode({password = \"w\"})\nt = \"${lookup(var.m, \"k\", \"v\")}\"\n", `
		p = <coalesce>
		p = <var.p>
		p = x
		q = <var.q>
		q = y
		r = ${var.a}-z
		s = <jsonencode>
		s.-.password = w
		t = ${lookup(var.m,
		t = ,
		t = )}`},
	{"a.tf", "here documents", "a = <<EOF\n  one\n  two\nEOF\nb = <<-X\n\tthree\n\tX\n", `
		a = <EOF>
		- = one two
		b = <X>`},
	{"a.tf", "CRLF and umlauts", "a = \"ü\"\r\nb = \"é\"\r\n", `
		a = ü
		b = é`},
	{"a.tf", "does not parse", "a = \"x\"\nb = = 1\n", `
		a = x
		b = <1>`},
}

func TestDocument(t *testing.T) {
	for _, c := range documents {
		t.Run(c.file+" "+c.name, func(t *testing.T) {
			var got []string
			for _, v := range valuesOf(t, c.file, c.text) {
				value := strings.Join(strings.Fields(c.text[v.lit.start:v.lit.end]), " ")
				if !v.lit.quoted {
					value = "<" + value + ">"
				}
				path := ""
				for s := v.path; s.up != nil; s = s.up {
					name := s.name
					if name == "" {
						name = "-"
					}
					path = strings.TrimSuffix(name+"."+path, ".")
				}
				got = append(got, path+" = "+value)
			}
			want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
			if got := strings.TrimSpace(strings.Join(got, "\n")); got != want {
				t.Errorf("values of\n%s\nare\n%s\nwant\n%s", c.text, got, want)
			}
		})
	}
}

func valuesOf(t *testing.T, file, text string) []value {
	t.Helper()
	names := judge.NewNames()
	names.Index()
	d := &reader{Rules: &Rules{Names: names}, s: text, lang: lex.Of(file), cache: &judge.Cache{}}
	return d.document(&region{s: text, toks: lex.Lex(text, 0, len(text), d.lang), to: len(text), bare: true})
}
