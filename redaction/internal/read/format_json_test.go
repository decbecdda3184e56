package read

import "testing"

var jsonCases = []formatCase{
	{name: "nested", text: `{"a": {"b": ["x", 1, {"c": "y"}]}, "d": null}`, want: `
		a.b.- = x
		a.b.- = <1>
		a.b.-.c = y
		d = <null>`},
	{name: "comments and trailing commas", text: "// {\n{\"a\": /* \"b\" */ \"c\", // \"\n \"d\": [1,],}\n", want: `
		a = c
		d.- = <1>`},
	{name: "lines", text: "{\"a\": \"x\"}\n{\"a\": \"y\"}\n\n[2]\n", want: `
		a = x
		a = y
		- = <2>`},
	{name: "a line that does not parse", text: "{\"a\": \"x\"}\n{a: y}\n{\"a\": \"z\"}\n", want: `
		a = x
		a = z`},
	{name: "escapes", text: `{"a\u0062": "x\"y\\", "c": "}"}`, want: `
		ab = x\"y\\
		c = }`},
	{name: "cut in a string", text: `{"a": {"b": "x", "c": "y`, cut: true, want: `
		a.b = x
		a.c = y`},
	{name: "cut behind a member", text: `{"a": ["x",`, cut: true, want: `a.- = x`},
	{name: "cut in a name", text: `{"a": "x", "b": `, part: true},
	{name: "scalar", text: ` "x" `, want: `= x`},
	{name: "umlauts and CRLF", text: "{\r\n\"ä\": \"ü\",\r\n\"b\": \"é\"\r\n}\r\n", want: `
		ä = ü
		b = é`},
}

func TestReadJSON(t *testing.T) { testFormat(t, readJSON, jsonCases) }

func FuzzReadJSON(f *testing.F) { fuzzFormat(f, readJSON, jsonCases) }
