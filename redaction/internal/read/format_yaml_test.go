package read

import "testing"

var yamlCases = []formatCase{
	{name: "scalars", text: "a: b\nc: 'd e'\ne: \"f\"\ng: 7 # x\n", want: `
		a = <b>
		c = d e
		e = f
		g = <7>`},
	{name: "nested", text: "passwords:\n  bob: x1\n  list:\n    - y2\n    - name: z3\n", want: `
		passwords.bob = <x1>
		passwords.list.- = <y2>
		passwords.list.-.name = <z3>`},
	{name: "flow", text: "users: [{user: derek, password: foo}, 'x']\n", want: `
		users.-.user = <derek>
		users.-.password = <foo>
		users.- = x`},
	{name: "documents", text: "a: 1\n---\nb: 2\n--- # c\nc: 3\n...\n", want: `
		a = <1>
		b = <2>
		c = <3>`},
	{name: "one document does not parse", text: "a: 1\n---\nb: [\n---\nc: 3\n", want: `
		a = <1>
		c = <3>`},
	{name: "CRLF and umlauts", text: "ä: ü\r\nbß: 'é' # ñ\r\nc:\r\n  - ö\r\n", want: `
		ä = <ü>
		bß = é
		c.- = <ö>`},
	{name: "block scalars", text: "a: |\n  one\n  two\nb: >-\n\n  three\n\n  four\nc: |2 # x\n   five\nd: 1\n", want: `
		a = <one two>
		b = <three four>
		c = <five>
		d = <1>`},
	{name: "anchors, tags and aliases", text: "a: &x !!str secret\nb: *x\nc: &y\n  d: 1\ne:\n  <<: *y\nf: !vault |\n  abc\n", want: `
		a = <secret>
		b = <secret>
		c.d = <1>
		f = <abc>`},
	{name: "several lines", text: "a: one\n  two\nb: \"three\n  four\"\nc: 'it''s'\n", want: `
		a = <one two>
		b = three four
		c = it''s`},
	{name: "templates", text: "{{- if .Values.x }}\na: {{ .Values.a | quote }}\nb: \"{{ .Values.b | default \"x\" }}\"\n{{- end }}\nc: {{ .r }}:{{ .t }}\n{{ include \"labels\" . | nindent 4 }}\nd: <%= x %>\n", want: `
		a = <{{ .Values.a | quote }}>
		b = {{ .Values.b | default "x" }}
		c = <{{ .r }}:{{ .t }}>
		d = <<%= x %>>`},
	{name: "byte order mark", text: "\ufeffa: b\nc: d\n", want: `
		a = <b>
		c = <d>`},
	{name: "not YAML", text: "a: b: c: [\n", part: true},
	{name: "complex keys", text: "? [a, b]\n: c\n", want: `
		- = <a>
		- = <b>
		- = <c>`},
}

func TestReadYAML(t *testing.T) { testFormat(t, readYAML, yamlCases) }

func FuzzReadYAML(f *testing.F) { fuzzFormat(f, readYAML, yamlCases) }
