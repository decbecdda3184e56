package read

import "testing"

var tomlCases = []formatCase{
	{name: "tables", text: "a = 'x'\n[b.c]\nd = \"y\" # z\n[[e]]\nf = 1\n[[e]]\nf = 2\n", want: `
		a = x
		b.c.d = y
		e.f = <1>
		e.f = <2>`},
	{name: "values", text: "a.b = [ 'x', # c\n  {c = 1.5, d.e = true}]\nf = 2026-01-02\ng = \"\"\"\none\ntwo\"\"\"\nh = '''x'''\n\"i j\" = \"q\\\"r\"\n", want: `
		a.b.- = x
		a.b.-.c = <1.5>
		a.b.-.d.e = <true>
		f = <2026-01-02>
		g = one two
		h = x
		i j = q\"r`},
	{name: "CRLF", text: "a = 'ü'\r\nb = 'x'\r\n", want: `
		a = ü
		b = x`},
	{name: "a line that does not parse", text: "a = 'x'\nb = y\n", part: true, want: `a = x`},
}

func TestReadTOML(t *testing.T) { testFormat(t, readTOML, tomlCases) }

func FuzzReadTOML(f *testing.F) { fuzzFormat(f, readTOML, tomlCases) }
