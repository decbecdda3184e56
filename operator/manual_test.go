package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli/manual"
)

// manual is the help of all commands, as a user gets it.
func pages(t *testing.T) []manual.Page {
	t.Helper()
	pages, err := manual.Collect(func(args ...string) (string, error) {
		got := say(t, nil, args...)
		if got.status != 0 || got.err != "" {
			t.Errorf("criticizer %v: status %d, %q", args, got.status, got.err)
		}
		return got.out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestEveryCommandHasItsHelp(t *testing.T) {
	t.Parallel()
	pages := pages(t)
	if listed := len(pages) - 1; listed != len(commands()) {
		t.Errorf("%d commands are in the usage of criticizer, %d exist: list what is missing under \"commands:\"", listed, len(commands()))
	}
	for _, p := range pages {
		if lacks := p.Lacks(); lacks != nil {
			t.Errorf("criticizer: the usage of %q lacks %s: the comment of package manual has the form", p.Name, strings.Join(lacks, ", "))
		}
	}
	for _, c := range manual.Commands(pages) {
		asked := say(t, nil, append(slices.Clone(c.Route), "-h")...)
		for line := range strings.Lines(asked.out) {
			if len(line) > 100 {
				t.Errorf("%v: a line of %d columns: %s", c.Route, len(line), line)
			}
		}
		if helped := say(t, nil, append([]string{"help"}, c.Route...)...); helped != asked || asked.status != 0 || !strings.HasPrefix(asked.out, "usage: criticizer ") {
			t.Errorf("%v: -h gives %+v, help gives %+v", c.Route, asked, helped)
		}
	}
	if got := say(t, nil, "help", "nonsense"); got.status != 2 || got.out != "" {
		t.Errorf("help of nothing: status %d, %q", got.status, got.out)
	}
}

// What the help says can be typed, and what can be typed the help says.
func TestFlagsAreThoseOfTheHelp(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, c := range manual.Commands(pages(t)) {
		for _, f := range c.Flags {
			documented[f.Name] = true
			route := slices.Concat([]string{"-config", "missing.yaml"}, c.Route)
			first := say(t, nil, append(route, "-"+f.Name)...)
			later := say(t, nil, append(route, "operand", "-"+f.Name)...)
			if strings.Contains(first.err, "not defined") && strings.Contains(later.err, "not defined") {
				t.Errorf("%v: its help has -%s: %s", c.Route, f.Name, first.err)
			}
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	defined := regexp.MustCompile(`\bflags\.[A-Z]\w+\((?:&[\w.]+, )?"([a-z-]+)"`)
	for _, file := range sources {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range defined.FindAllStringSubmatch(string(source), -1) {
			if !strings.HasSuffix(file, "_test.go") && !documented[found[1]] {
				t.Errorf("%s: no help has the flag -%s: add it to the usage, in a synopsis or under \"flags:\"", file, found[1])
			}
		}
	}
}

// Every example can be typed as it stands: it fails for want of a
// configuration, not for wrong usage.
func TestExamplesCanBeTyped(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, s := range p.Sections {
			if s.Title != "examples" {
				continue
			}
			for line := range strings.Lines(s.Text) {
				_, command, ok := strings.Cut(line, "criticizer ")
				if !ok || !strings.HasPrefix(line, "  ") || strings.HasPrefix(command, "man ") || strings.HasPrefix(command, "completion ") {
					continue
				}
				if got := say(t, nil, words(command)...); got.status == 2 {
					t.Errorf("%s: %s", strings.TrimSpace(line), got.err)
				}
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

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	if got := say(t, nil, "-version"); got.status != 0 || !strings.HasPrefix(got.out, "criticizer ") || strings.Count(got.out, "\n") != 1 {
		t.Errorf("status %d, %q", got.status, got.out)
	}
}

// The script is asked by bash itself what may follow.
func TestCompletionKnowsTheCommands(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: there is no bash")
	}
	script := say(t, nil, "completion", "bash")
	if script.status != 0 {
		t.Fatal(script.err)
	}
	for typed, want := range map[string]string{
		"criticizer deadl":                       "deadletter",
		"criticizer deadletter re":               "replay resolve",
		"criticizer -config f deadletter list -": "-class -stage -older-than -escalated -unexplained -state -json",
		"criticizer completion ":                 "bash fish zsh",
		"criticizer review show 4711 -format x":  "",
	} {
		cmd := exec.CommandContext(t.Context(), bash, "-c", script.out+"\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _criticizer; for c in \"${COMPREPLY[@]}\"; do echo \"$c\"; done", "bash")
		cmd.Args = append(cmd.Args, strings.Split(typed, " ")...)
		out, err := cmd.CombinedOutput()
		if err != nil || !containsAll(strings.Fields(string(out)), strings.Fields(want)) {
			t.Errorf("%q: completed by %q, want %q; %v", typed, out, want, err)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "x", "y"}} {
		if got := say(t, nil, args...); got.status != 2 {
			t.Errorf("%v: status %d, %q", args, got.status, got.err)
		}
	}
	if got := say(t, nil, "completion", "bash", "no-such-program"); got.status != 1 || !strings.Contains(got.err, "\nhint: name the file of worker or starter") {
		t.Errorf("of no program: status %d, %q", got.status, got.err)
	}
}

func containsAll(all, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(all, w) })
}

func TestManPagesAreWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	program := filepath.Join(t.TempDir(), "criticizer-starter")
	script := "#!/bin/sh\nprintf 'usage: starter drain\\n       starter help\\n\\nStarts reviews.\\n'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := say(t, nil, "man", dir, program); got.status != 0 || got.out != "" {
		t.Fatalf("status %d, %q, %q", got.status, got.out, got.err)
	}
	for _, p := range pages(t) {
		page, err := os.ReadFile(filepath.Join(dir, p.ManName()+".1"))
		if err != nil || !strings.HasPrefix(string(page), ".TH ") {
			t.Errorf("%s: %.20q, %v", p.ManName(), page, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "criticizer-starter.1")); err != nil {
		t.Error(err)
	}
	if got := say(t, nil, "man"); got.status != 2 {
		t.Errorf("without a directory: status %d, %q", got.status, got.err)
	}
}

func TestListsArePrintedAsJSON(t *testing.T) {
	t.Parallel()
	env := rulesSite(t, "pack ours\nfiles //depot/ours/**\nlook for\n- Our own trap.\n")
	list := filepath.Join(t.TempDir(), "paths")
	if err := os.WriteFile(list, []byte("//depot/ours/...\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"packs that count":   {[]string{"rules", "check", "-json", "//depot/ours/a.go"}, 0, `"pattern": "//depot/ours/**"`},
		"all packs":          {[]string{"rules", "list", "-json"}, 0, `"name": "ours"`},
		"what they say":      {[]string{"rules", "list", "-json", "-text"}, 0, "Our own trap."},
		"paths that may not": {[]string{"allowlist", "check", "-json", "-file", list, "//depot/ours/a", "//depot/b"}, 1, `"allowed": false`},
	} {
		got := say(t, env, tt.args...)
		if got.status != tt.status || !strings.HasPrefix(got.out, "[\n") || !strings.Contains(got.out, tt.want) {
			t.Errorf("%s: status %d, %s%s", name, got.status, got.out, got.err)
		}
	}
}

func TestLongWorkSaysSo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a command":             {[]string{"keyset"}, "criticizer keyset\n"},
		"one that reads":        {[]string{"redact"}, ""},
		"one that is live":      {[]string{"top", "-h"}, ""},
		"one that prints JSON":  {[]string{"rules", "list", "-json"}, ""},
		"help, which is no one": {[]string{"-h"}, ""},
	} {
		var said strings.Builder
		c := console{getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &strings.Builder{}, stderr: &said}
		c.onWork = func(_ io.Writer, command string) func() { return func() { said.WriteString(command + "\n") } }
		if err := c.run(t.Context(), tt.args); statusOf(&said, err) != 0 || said.String() != tt.want {
			t.Errorf("%s: %q, want %q; %v", name, said.String(), tt.want, err)
		}
	}
}
