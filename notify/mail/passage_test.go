package mail

import (
	"slices"
	"strings"
	"testing"
)

func TestPassages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []passage
	}{
		"prose":                         {"One.\n\nTwo,\nthree.", []passage{{false, "One.\n\nTwo,\nthree."}}},
		"fenced code":                   {"Write:\n```go\nif x {\n\ty()\n\n}\n```\nThen test.", []passage{{false, "Write:"}, {true, "if x {\n    y()\n\n}"}, {false, "Then test."}}},
		"a fence without an end":        {"```\na\nb", []passage{{true, "a\nb"}}},
		"indented behind a colon":       {"Write:\n  a()\n    b()\nDone.", []passage{{false, "Write:"}, {true, "a()\n  b()"}, {false, "Done."}}},
		"indented behind an empty line": {"Write\n\n\ta()\n\n\tb()", []passage{{false, "Write"}, {true, "a()\n\nb()"}}},
		"a list that goes on":           {"- one\n  and more\n- two", []passage{{false, "- one\n  and more\n- two"}}},
		"code within a line":            {"```a``` is wrong.", []passage{{false, "```a``` is wrong."}}},
		"nothing":                       {"", nil},
		"fences around nothing":         {"```\n```\n\n```\n```", nil},
	} {
		if got := passages(tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if got := passages(strings.Repeat("```\na\n```\nb\n", 500)); len(got) != maxPassages || strings.Count(got[maxPassages-1].Text, "a") < 490 {
		t.Errorf("%d passages, the last with %q", len(got), got[len(got)-1].Text)
	}
}

func TestTextKeepsTheLinesOfCode(t *testing.T) {
	t.Parallel()
	long := "x := " + strings.Repeat("a, ", 40) + "b"
	got := lay(2, []passage{{false, strings.Repeat("word ", 20)}, {true, long + "\n  y"}})
	if !strings.Contains(got, "\n\n    "+long+"\n      y") || strings.Count(strings.Split(got, "\n\n")[0], "\n") != 1 {
		t.Errorf("got\n%s", got)
	}
}

func FuzzPassages(f *testing.F) {
	f.Add("Write:\n```go\nif x {\n\ty()\n}\n```\nThen test.\n\n  a")
	f.Fuzz(func(t *testing.T, text string) {
		all := passages(text)
		kept := ""
		for _, p := range all {
			kept += "\n" + p.Text
		}
		if len(all) > maxPassages || words(kept) != words(text) {
			t.Errorf("%q became %+v", text, all)
		}
	})
}

// words is text without blanks and fences.
func words(text string) string {
	var out strings.Builder
	for l := range strings.SplitSeq(text, "\n") {
		if !isFence(l) {
			out.WriteString(strings.Join(strings.Fields(l), ""))
		}
	}
	return out.String()
}
