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
		{"letters that need a joiner", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u2764\ufe0f\u200d\U0001f525", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u2764\ufe0f\u200d\U0001f525"},
		{"bits in joiners and selectors", "a\u200db\u200c\ufe0f\u0645\u200d\u200dc", "a[U+200D]b[U+200C][U+FE0F]\u0645\u200d[U+200D]c"},
		{"letters that look blank", "\u3164\u115f\uffa0\u2800\u17b4\u034f\u00ad\ufff4\U000e0041", "[U+3164][U+115F][U+FFA0][U+2800][U+17B4][U+034F][U+00AD][U+FFF4][U+E0041]"},
		{"byte order marks", "\ufeffa\ufeffb", "\ufeffa[U+FEFF]b"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
		{"link", "see https://evil.example/x.html.", "see https[:]//evil.example/x.html."},
		{"link to a short name", "http://intranet/x", "http[:]//intranet/x"},
		{"links without a gap", "http://a://b://c://d", "http[:]//a[:]//b[:]//c[:]//d"},
		{"link in quotes", `get("ssh+x://evil", 'HTTP://%61')`, `get("ssh+x[:]//evil", 'HTTP[:]//%61')`},
		{"link without scheme", "www.evil.example. WWW。evil", "www[.]evil.example. WWW[。]evil"},
		{"scheme alone", `strings.HasPrefix(s, "http://") || 'ws://' (ftp://) x`, `strings.HasPrefix(s, "http://") || 'ws://' (ftp://) x`},
		{"depot path", "//depot/main/a.c#3 //depot/setup.py@12", "//depot/main/a.c#3 //depot/setup.py@12"},
		{"C++", "std::map<a, b>::iterator // x", "std::map<a, b>::iterator // x"},
		{"Go", `c.mu.Unlock() x.y[1.5] "\\d+\n" errors.New(s) time.Now()`, `c.mu.Unlock() x.y[1.5] "\\d+\n" errors.New(s) time.Now()`},
		{"Python", "self.data = yaml.safe_load(f.read()) @ w; lambda data:x", "self.data = yaml.safe_load(f.read()) @ w; lambda data:x"},
		{"names", `"github.com/x/y" 127.0.0.1 root@db.example \\host\share`, `"github.com/x/y" 127.0.0.1 root@db.example \\host\share`},
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
		plaintest.NoURLs(t, plain.Text(s, 500))
		plaintest.NoMarkdown(t, plain.Markdown(plain.Text(s, 500)))
		plaintest.NoMarkdown(t, "high: x\n"+plain.Markdown(plain.Line(s, 500))+"\n")
	}
}

// Not even the checks above may pass for nothing.
func TestChecksFindLinks(t *testing.T) {
	t.Parallel()
	for i, s := range plaintest.Payloads()[:13] {
		probe := &testing.T{}
		plaintest.NoLinks(probe, s)
		if !probe.Failed() && i != 5 && i != 6 { // no program links //evil.example
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
		plaintest.NoURLs(t, once)
		plaintest.NoMarkdown(t, plain.Markdown(once))
		if line := plain.Line(s, 1000); strings.Contains(line, "\n") {
			t.Errorf("%q has more than one line", line)
		}
	})
}
