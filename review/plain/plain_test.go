package plain_test

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review/plain"
	"github.com/criticizer/criticizer/review/plain/plaintest"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "a  b\n\tc", "a  b\n\tc"},
		{"Windows line ends", "a\r\nb", "a\nb"},
		{"terminal escape", "\x1b[2J", "[U+001B][2J"},
		{"reversed text", "\u202egnp", "[U+202E]gnp"},
		{"line separator", "a\u2028b", "a[U+2028]b"},
		{"emoji of several", "\U0001F469\u200d\U0001F4BB", "\U0001F469\u200d\U0001F4BB"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
		{"link", "see https://evil.example/x.html.", "see https[:]//evil[.]example/x.html."},
		{"link to a short name", "http://intranet/x", "http[:]//intranet/x"},
		{"link without scheme", "www.evil.example.", "www[.]evil[.]example."},
		{"bare domain", "evil.com, evil.zip: x", "evil[.]com, evil[.]zip: x"},
		{"domain in a path", "//depot/evil.com/x.c", "//depot/evil[.]com/x.c"},
		{"foreign dot", "evil。com пример.рф", "evil[。]com пример[.]рф"},
		{"mail link", "mailto:eve@evil.example", "mailto[:]eve[at]evil[.]example"},
		{"address", "eve@evil.example x@163.com", "eve[at]evil[.]example x[at]163[.]com"},
		{"addresses without a gap", "0@A@0.0 a@b.c@d.e@f.g", "0[at]A[at]0.0 a[at]b.c[at]d.e[at]f.g"},
		{"schemes without a gap", "data:data:data:x", "data[:]data[:]data[:]x"},
		{"scheme before spaces", "data: x tel:\n data:\u00a0x tel:\u2003x", "data: x tel:\n data[:]\u00a0x tel[:]\u2003x"},
		{"UNC paths without a gap", `\\ab-\\cd-\\ef`, `[\\]ab-[\\]cd-[\\]ef`},
		{"UNC path", `see \\host\share`, `see [\\]host\share`},
		{"address of a host", "10.0.0.1", "10[.]0[.]0[.]1"},
		{"address of a host in a word", "10.0.0.1.0 x-10.0.0.1 10。0。0。1 1.2.3", "10[.]0[.]0[.]1[.]0 x-10[.]0[.]0[.]1 10[。]0[。]0[。]1 1.2.3"},
		{"depot path", "//depot/main/a.c#3 //depot/setup.py@12", "//depot/main/a.c#3 //depot/setup.py@12"},
		{"C++", "std::map<a, b>::iterator // x", "std::map<a, b>::iterator // x"},
		{"code", `c.mu.Unlock() x.y[1.5] "\\d+\n" main.go`, `c.mu.Unlock() x.y[1.5] "\\d+\n" main.go`},
		{"code with a domain's name", "setup.py obj.id", "setup[.]py obj[.]id"},
	} {
		got := plain.Text(tc.in, 100)
		if got != tc.want || plain.Text(got, 100) != got {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := plain.Text("abcdef", 4); got != "abcd… [2 more characters]" {
		t.Errorf("cut text: %q", got)
	}
	if got := plain.Line(" a\n\tb ", 10); got != "a b" {
		t.Errorf("one line: %q", got)
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, s := range plaintest.Payloads() {
		plaintest.NoLinks(t, plain.Text(s, 500))
		plaintest.NoMarkdown(t, plain.Markdown(plain.Text(s, 500)))
		plaintest.NoMarkdown(t, "high: x\n"+plain.Markdown(plain.Line(s, 500))+"\n")
	}
}

// Not even the checks above may pass for nothing.
func TestChecksFindLinks(t *testing.T) {
	t.Parallel()
	for _, s := range plaintest.Payloads()[:4] {
		probe := &testing.T{}
		plaintest.NoLinks(probe, s)
		if !probe.Failed() {
			t.Errorf("no link is found in %q", s)
		}
	}
	probe := &testing.T{}
	plaintest.NoMarkdown(probe, "[free](https://evil.example)")
	if !probe.Failed() {
		t.Error("no link is found in Markdown")
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range plaintest.Payloads() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := plain.Text(s, 1000)
		plaintest.NoLinks(t, once)
		plaintest.NoMarkdown(t, plain.Markdown(once))
		if line := plain.Line(s, 1000); strings.Contains(line, "\n") {
			t.Errorf("%q has more than one line", line)
		}
	})
}
