package read

import "testing"

var hclCases = []formatCase{
	{name: "blocks and attributes", text: "variable \"db\" {\n  default   = \"x\" # c\n  sensitive = true\n}\na = [\"y\", 1]\nb = { c = \"z\", \"d\" : null }\n", want: `
		variable.db.default = x
		variable.db.sensitive = <true>
		a.- = y
		a.- = <1>
		b.c = z
		b.d = <null>`},
	{name: "expressions", text: "p = coalesce(var.p, \"x\")\nq = var.q == \"\" ? \"y\" : var.q\nr = \"${var.a}-z\"\ns = jsonencode({password = \"w\"})\nt = \"${lookup(var.m, \"k\", \"v\")}\"\n", want: `
		p = x
		q = y
		r = ${var.a}-z
		s.password = w
		t = k
		t = v`},
	{name: "here documents", text: "a = <<EOF\n  one\n  two\nEOF\nb = <<-X\n\tthree\n\tX\n", want: `
		a = one two
		b = three`},
	{name: "CRLF and umlauts", text: "a = \"ü\"\r\nb = \"é\"\r\n", want: `
		a = ü
		b = é`},
	{name: "does not parse", text: "a = \"x\"\nb = = 1\n", part: true, want: `a = x`},
}

func TestReadHCL(t *testing.T) { testFormat(t, readHCL, hclCases) }

func FuzzReadHCL(f *testing.F) { fuzzFormat(f, readHCL, hclCases) }
