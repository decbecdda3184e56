package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/failure"
)

// leak is a made-up password; nothing has it.
const leak = "Xk29dkQ0dks!"

func runRedact(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var stdout strings.Builder
	err := redact(t.Context(), args, console{stdin: strings.NewReader(stdin), stdout: &stdout})
	return stdout.String(), err
}

func TestRedactPrintsWhatAModelSees(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, "@@ -1 +1 @@\n-a\n+password = \""+leak+"\"\n")
	if err != nil || strings.Contains(out, leak) || !strings.HasPrefix(out, "@@ -1 +1 @@\n-a\n+password = \"[REDACTED:password:") || !strings.HasSuffix(out, "]\"\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRedactExplainsWithoutTheSecret(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, "x\npassword = \""+leak+"\"\n", "-explain")
	if err != nil || out != "line 2 bytes 14-26 password: assignment\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRedactLinesSpeaksTheScorersProtocol(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, `{"id":7,"text":"password = \"`+leak+`\"","path":"a"}`+"\n\n"+`{"id":"b","text":"x","path":""}`, "-jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var first struct {
		ID    int
		Text  string
		Spans [][2]int
		Rules []string
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || first.ID != 7 || len(first.Spans) != 1 || first.Spans[0] != [2]int{12, 24} || first.Rules[0] != "password: assignment" || strings.Contains(out, leak) {
		t.Errorf("got %s", out)
	}
	if lines[1] != `{"id":"b","text":"x","spans":[],"rules":[]}` {
		t.Errorf("got %s", lines[1])
	}
}

func TestRedactRefusesBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stdin string
		args  []string
		class failure.Class
	}{
		"a line of no JSON":  {"x\n", []string{"-jsonl"}, failure.InputInvalid},
		"a missing rules":    {"", []string{"-rules", "does-not-exist"}, failure.ConfigInvalid},
		"over the limit":     {strings.Repeat("a", 100), []string{"-max-bytes", "10"}, failure.RedactionBlocked},
		"binary":             {strings.Repeat("\x00\x01", 100), nil, failure.RedactionBlocked},
		"an empty host name": {"", []string{"-hosts", "."}, failure.ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := runRedact(t, c.stdin, c.args...); failure.ClassOf(err) != c.class || out != "" {
				t.Errorf("got %q, %v: want class %s and no output", out, err, c.class)
			}
		})
	}
}
