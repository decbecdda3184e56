package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newRulesEnvironment has a configuration with rules only.
func newRulesEnvironment(t *testing.T, rules string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site.yaml":       rules,
		"criticizer.yaml": fmt.Sprintf("llm: {rules: [%q]}\n", filepath.Join(dir, "site.yaml")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"CRITICIZER_CONFIG": filepath.Join(dir, "criticizer.yaml")}
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	env := newRulesEnvironment(t, "\nname: ours\nfiles: ['//depot/ours/**']\nlook_for:\n- Our own trap.\n")
	got := say(t, env, "rules", "check", "//depot/ours/a.go", "//depot/main/a.go", "//depot/main/a.bin")
	lines := strings.Split(got.out, "\n")
	if got.status != 0 || len(lines) != 4 ||
		!strings.HasPrefix(lines[0], "//depot/ours/a.go: pack ours (") || !strings.HasSuffix(lines[0], "site.yaml:2), pattern //depot/ours/**") ||
		lines[1] != "//depot/main/a.go: pack go (shipped), pattern *.go" ||
		lines[2] != "//depot/main/a.bin: no pack has a pattern for it" {
		t.Errorf("status %d, %s%s", got.status, got.out, got.err)
	}
}

func TestRulesList(t *testing.T) {
	t.Parallel()
	got := say(t, newRulesEnvironment(t, "name: ours\nfiles: ['*.x']\nlook_for:\n- Our own trap.\n"), "rules", "list", "--text")
	if got.status != 0 || !strings.HasPrefix(got.out, "ours (") || !strings.Contains(got.out, "- Our own trap.") || !strings.Contains(got.out, "\ngo (shipped): *.go\n") {
		t.Errorf("status %d, %s%s", got.status, got.out, got.err)
	}
}

func TestWrongRulesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	got := say(t, newRulesEnvironment(t, "name: ours\nfiles: ['//depot/...']\n"), "rules", "list")
	if got.status != 1 || got.out != "" || !strings.Contains(got.err, "site.yaml:2: ") || !strings.Contains(got.err, "hint: docs/rules.md") {
		t.Errorf("status %d, %q, %q", got.status, got.out, got.err)
	}
	for _, args := range [][]string{{"rules"}, {"rules", "check"}, {"rules", "list", "x"}, {"rules", "show"}} {
		if got := say(t, nil, args...); got.status != 2 {
			t.Errorf("%v: status %d, %q", args, got.status, got.err)
		}
	}
}
