package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/criticizer.md")

// newTree returns the tree as it is executed.
func newTree() *cobra.Command {
	root := new(app).rootCommand()
	cli.Prepare(root)
	return root
}

// commands lists all commands of the tree, without the pages of docs.
func commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, child := range root.Commands() {
		if !child.Hidden {
			all = append(all, commands(child)...)
		}
	}
	return all
}

// TestReference compares the reference with the command tree.
// "go test ./criticizer -run TestReference -update" writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../docs/reference/criticizer.md"
	var page strings.Builder
	root := newTree()
	withFlags := map[string]string{} // the first command with these flags
	page.WriteString("<!-- Generated: go test ./criticizer -run TestReference -update -->\n# The command criticizer\n\nFor the operator. `criticizer help COMMAND` also shows examples.\n")
	for _, cmd := range commands(root) {
		if isCobras(cmd) || !cmd.Runnable() && cmd.Long == "" {
			continue
		}
		if cmd != root {
			fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		fmt.Fprintf(&page, "\n%s\n", strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)))
		flags := regexp.MustCompile(`(?m)^ +(-h, )?--help .*\n`).ReplaceAllString(cmd.NonInheritedFlags().FlagUsages(), "")
		switch first := withFlags[flags]; {
		case flags == "" || !cmd.Runnable() && cmd != root:
		case first != "" && strings.Count(flags, "\n") > 2:
			fmt.Fprintf(&page, "\nFlags: those of %s.\n", first)
		default:
			withFlags[flags] = cmd.CommandPath()
			fmt.Fprintf(&page, "\n%s\n", indented(flags, "  "))
		}
	}
	want := strings.ReplaceAll(page.String(), "\t", "    ")
	if *update {
		testkit.NoError(t, os.WriteFile(file, []byte(want), 0o600))
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != want {
		t.Errorf("%s differs from the command tree: run this test with -update", file)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(newTree()) {
		if cmd.Short == "" {
			t.Errorf("%s lacks a short description", cmd.CommandPath())
		}
		typed := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if got := say(t, nil, typed...); got.status != 0 || got.err != "" || !strings.Contains(got.out, "Usage:\n  "+cmd.CommandPath()) {
			t.Errorf("%v: %+v", typed, got)
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 85 && !isCobras(cmd) {
				t.Errorf("%s: a line of %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}
	}
}

// isCobras reports whether cobra has written the help of a command.
func isCobras(cmd *cobra.Command) bool {
	return cmd.Name() == "help" || cmd.Name() == "completion" || cmd.Parent() != nil && cmd.Parent().Name() == "completion"
}

// Every example can be typed: without a configuration it fails with status 1, not
// with wrong usage.
func TestExamplesCanBeTyped(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(newTree()) {
		if cmd.Name() == "help" {
			continue
		}
		for line := range strings.Lines(cmd.Example) {
			_, typed, ok := strings.Cut(line, "criticizer ")
			if !ok {
				continue
			}
			if got := say(t, nil, append([]string{"--config", "missing.yaml"}, words(typed)...)...); got.status == 2 {
				t.Errorf("%s: %s", strings.TrimSpace(line), got.err)
			}
		}
	}
}

// words splits a command line as a shell does, up to a pipe or a redirection.
func words(line string) []string {
	var all []string
	for _, w := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1) {
		if w == "|" || w == "<" || w == ">" {
			break
		}
		all = append(all, strings.Trim(w, `"'`))
	}
	return all
}

// completions asks for the completion of the last word.
func completions(t *testing.T, env map[string]string, typed ...string) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(say(t, env, append([]string{"__complete"}, typed...)...).out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
			found = append(found, word)
		}
	}
	return found
}

func TestCompletionOfFixedValues(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string][]string{
		"deadletter re":                   {"replay", "resolve"},
		"deadletter list --stage ":        {"fetch", "llm", "notify"},
		"deadletter list --class AUTH":    {"AUTH_DENIED"},
		"deadletter list --state ":        {"open", "replaying", "failed_again", "resolved", "all"},
		"delivery list --status ":         {"pending", "sent", "failed", "held", "waived"},
		"status 4711 -o ":                 {"table", "wide", "json"},
		"review show 4711 --format ":      {"text", "html", "json", "sarif"},
		"--config f deadletter show --js": {"--json"},
		"completion ":                     {"bash", "fish", "powershell", "zsh"},
		"help dead":                       {"deadletter"},
	} {
		got := completions(t, nil, strings.Split(typed, " ")...)
		if slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }) {
			t.Errorf("%q: completed by %q, want %q", typed, got, want)
		}
	}
}

// The script is loaded by bash itself.
func TestCompletionScript(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: there is no bash")
	}
	script := say(t, nil, "completion", "bash")
	if out, err := exec.CommandContext(t.Context(), bash, "-c", script.out+"\ncomplete -p criticizer").CombinedOutput(); err != nil || script.status != 0 {
		t.Errorf("status %d, %v: %s", script.status, err, out)
	}
	if got := say(t, nil, "completion", "tcsh"); got.status != 2 {
		t.Errorf("an unknown shell: %+v", got)
	}
}

func TestListsArePrintedAsJSON(t *testing.T) {
	t.Parallel()
	env := newRulesEnvironment(t, "name: ours\nfiles: ['//depot/ours/**']\nlook_for:\n- Our own trap.\n")
	env["CRITICIZER_P4_ALLOWED_PATHS"] = "//depot/ours/..."
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"the pack of a path":     {[]string{"rules", "check", "--json", "//depot/ours/a.go"}, 0, `"pattern": "//depot/ours/**"`},
		"all packs":              {[]string{"-o", "json", "rules", "list"}, 0, `"name": "ours"`},
		"the text of packs":      {[]string{"rules", "list", "--json"}, 0, "Our own trap."},
		"paths outside the list": {[]string{"allowlist", "check", "--json", "//depot/ours/a", "//depot/b"}, 1, `"allowed": false`},
	} {
		got := say(t, env, tt.args...)
		if got.status != tt.status || !strings.HasPrefix(got.out, "[\n") || !strings.Contains(got.out, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a command":                {[]string{"keyset", "evidence"}, "criticizer keyset evidence\n"},
		"one that reads its input": {[]string{"redact"}, ""},
		"help":                     {[]string{"top", "--help"}, ""},
		"JSON":                     {[]string{"rules", "list", "--json"}, ""},
	} {
		var reported strings.Builder
		c := &app{getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: io.Discard, stderr: &reported}
		c.progress = func(_ io.Writer, command string) func() { return func() { reported.WriteString(command + "\n") } }
		if status := c.run(t.Context(), tt.args); status != 0 || reported.String() != tt.want {
			t.Errorf("%s: status %d, %q, want %q", name, status, reported.String(), tt.want)
		}
	}
}
