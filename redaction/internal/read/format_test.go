package read

import (
	"strings"
	"testing"
	"time"
)

// A formatCase is a text and its values, one per line: path = value, where a dot joins the names of
// a path, - is an element of a list, and <> encloses a value that is not in quotes.
type formatCase struct {
	name, text, want string
	// part is set if the text is not read to its end, cut if it ends within the document.
	part, cut bool
}

func testFormat(t *testing.T, read format, cases []formatCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc := read(c.text)
			var got []string
			for _, v := range doc.Values {
				value := strings.Join(strings.Fields(c.text[v.Start:v.End]), " ")
				if !v.Quoted {
					value = "<" + value + ">"
				}
				got = append(got, pathString(v.Path)+" = "+value)
			}
			want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
			if got := strings.TrimSpace(strings.Join(got, "\n")); got != want {
				t.Errorf("values of\n%s\nare\n%s\nwant\n%s", c.text, got, want)
			}
			read := 0
			for _, p := range doc.Read {
				read = p.To
			}
			if whole := read == len(c.text); whole == c.part || doc.Cut != c.cut {
				t.Errorf("read %d of %d bytes, cut %t", read, len(c.text), doc.Cut)
			}
		})
	}
}

func pathString(s *Step) string {
	if s == nil || s.Up == nil {
		return ""
	}
	name := s.Name
	if name == "" {
		name = "-"
	}
	return strings.TrimPrefix(pathString(s.Up)+"."+name, ".")
}

// checkDocument reports what no format may return.
func checkDocument(t *testing.T, text string, doc document) {
	t.Helper()
	last := 0
	for _, v := range doc.Values {
		if v.Path == nil || v.Start < last || v.End <= v.Start || v.End > len(text) {
			t.Fatalf("value %d:%d behind %d of %d bytes", v.Start, v.End, last, len(text))
		}
		last = v.Start
	}
	last = 0
	for _, p := range doc.Read {
		if p.From < last || p.To < p.From || p.To > len(text) {
			t.Fatalf("part %v of %d bytes", p, len(text))
		}
		last = p.To
	}
}

// fuzzFormat checks that a format finds its values in the text.
func fuzzFormat(f *testing.F, read format, cases []formatCase) {
	f.Helper()
	for _, c := range cases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		checkDocument(t, text, read(text))
	})
}

// TestFormatsAreBounded reads much of what is hard for a parser.
func TestFormatsAreBounded(t *testing.T) {
	const size, most = 256 << 10, time.Second
	hard := []string{"[", "{", "(", "[[", `{"a":`, `["`, "a: ", "- ", "- - ", "? ", "a:\n", "&a ", "*a ", "!t ", "{{ ", "{{ x }} ", "a: {{ x }}\n", "<%", "\"", "'", `"a": 1, `, "<a>", "<a b='c' ",
		"<!--", "<a/>", "a,b\n", "\"a\n,", "#\n", "a = [", "a = {", "[[a]]\n", "[a.b.c]\n", "a.b.", "a = 1\n", "${", "$(", "`", "`\\", "((", "if a; then ", "a | ", "a && ", "! ", "<<A\n", "cat <<A\nx\n", "a = !", "a = -", "a ? b : ", "a {\n",
		"a = \"${", "a(", "%{if a}", "x\n", "\r\n", "ü: ü\n", "a: |\n  b\n", "key: value # c\n", "/*", "//", "\x00", "[0,", "1 ", "a=${a:-", "a=$(a ", "case a in a) ", "{ ", "a() { ", "[[ a ", "a | \n"}
	for name, read := range formats {
		t.Run(name, func(t *testing.T) {
			for _, piece := range hard {
				text := strings.Repeat(piece, size/len(piece))
				begin := time.Now()
				checkDocument(t, text, read(text))
				if spent := time.Since(begin); spent > most {
					t.Errorf("%q repeated takes %s", piece, spent)
				}
			}
		})
	}
}
