package read

import "testing"

var csvCases = []formatCase{
	{part: true, name: "irregular rows", text: "id,Name (full),password\n1,bob,x\n\n# note\n2,eve\n3,\"a \"\"b\"\",\nc\",y,z\n4,,w\n", want: `
		-.id = <1>
		-.Name (full) = <bob>
		-.password = <x>
		-.id = <2>
		-.Name (full) = <eve>
		-.id = <3>
		-.Name (full) = a ""b"", c
		-.password = <y>
		-.id = <4>
		-.password = <w>`},
	{part: true, name: "tabs", text: "a\tb\nx\ty\n", want: `
		-.a = <x>
		-.b = <y>`},
	{part: true, name: "semicolons and CRLF", text: "\ufeffa;b\r\n\"x, y\";z\r\n", want: `
		-.a = x, y
		-.b = <z>`},
	{part: true, name: "a comment first", text: "# users\n#a,b\n1,2\n", want: `
		-.a = <1>
		-.b = <2>`},
	{part: true, name: "quotes in cells", text: "a,b\nx\"y,z\n\"s\r\nt\",u\n", want: `
		-.a = <x"y>
		-.b = <z>
		-.a = s t
		-.b = <u>`},
	{part: true, name: "one column", text: "a\nb\n"},
}

func TestReadCSV(t *testing.T) { testFormat(t, readCSV, csvCases) }

func FuzzReadCSV(f *testing.F) { fuzzFormat(f, readCSV, csvCases) }
