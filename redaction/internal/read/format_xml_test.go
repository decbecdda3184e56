package read

import "testing"

var xmlCases = []formatCase{
	{name: "elements and attributes", part: true, text: "<?xml version=\"1.0\"?>\n<!-- <x>y</x> -->\n<a b=\"c\" d='e f'>\n <g>  h </g><i><![CDATA[<j>]]></i>\n <add key=\"k\"\n value = \"v\" />\n</a>", want: `
		a.b = c
		a.d = e f
		a.g.- = <h>
		a.i.- = <<j>>
		a.add.key = k
		a.add.value = v`},
	{name: "property list", part: true, text: "<dict><key>Password</key><string>x</string><key>n</key><dict><key>m</key><integer>1</integer></dict></dict>", want: `
		dict.key.- = <Password>
		dict.Password.- = <x>
		dict.key.- = <n>
		dict.n.key.- = <m>
		dict.n.m.- = <1>`},
	{name: "another encoding, umlauts and CRLF", part: true, text: "<?xml version='1.0' encoding='windows-1252'?>\r\n<a ä='ü'>é</a>\r\n", want: `
		a.ä = ü
		a.- = <é>`},
	{name: "not closed", part: true, text: "<a><b c=\"d\">e", want: `
		a.b.c = d
		a.b.- = <e>`},
}

func TestReadXML(t *testing.T) { testFormat(t, readXML, xmlCases) }

func FuzzReadXML(f *testing.F) { fuzzFormat(f, readXML, xmlCases) }
