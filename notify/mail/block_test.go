package mail

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitBlocks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []block
	}{
		"prose":                          {"One.\n\nTwo,\nthree.", []block{{false, "One.\n\nTwo,\nthree."}}},
		"fenced code":                    {"Write:\n```go\nif x {\n\ty()\n\n}\n```\nThen test.", []block{{false, "Write:"}, {true, "if x {\n\ty()\n\n}"}, {false, "Then test."}}},
		"a fence without an end":         {"```\na\nb", []block{{true, "a\nb"}}},
		"indented after a colon":         {"Write:\n  a()\n    b()\nDone.", []block{{false, "Write:"}, {true, "a()\n  b()"}, {false, "Done."}}},
		"indented after an empty line":   {"Write\n\n\ta()\n\n\tb()", []block{{false, "Write"}, {true, "a()\n\nb()"}}},
		"a list with continuation lines": {"- one\n  and more\n- two", []block{{false, "- one\n  and more\n- two"}}},
		"code within a line":             {"```a``` is wrong.", []block{{false, "```a``` is wrong."}}},
		"nothing":                        {"", nil},
		"empty fences":                   {"```\n```\n\n```\n```", nil},
	} {
		if got := splitBlocks(tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if got := splitBlocks(strings.Repeat("```\na\n```\nb\n", 500)); len(got) != maxBlocks || strings.Count(got[maxBlocks-1].Text, "a") < 490 {
		t.Errorf("%d blocks, the last with %q", len(got), got[len(got)-1].Text)
	}
}
