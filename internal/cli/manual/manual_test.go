package manual

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root and box are a program of two pages.
const (
	root = `usage: tool [-config FILE] COMMAND [flags]
       tool help [COMMAND]

Opens and closes boxes.

commands:
  box   open, close or paint boxes
  help  print this

flags:
  -config FILE  where boxes are

examples:
  tool box open 7

Exit status: 0 done, 1 failed.
`
	box = `usage: tool box open [flags] ID...
       tool box paint ID -colour red|green [-dry]

  open   open a box
  paint  make a box prettier, in any
         colour

flags of open:
  -force     break the lock
  -in DIR    look there
             and below

flags:
  -dry       change nothing

examples:
  .paint's \ next

Exit status of all: 0 done; 1 failed, or not
quite done.
`
)

func pages(t *testing.T) []Page {
	t.Helper()
	pages, err := Collect(func(args ...string) (string, error) {
		switch strings.Join(args, " ") {
		case "-h":
			return root, nil
		case "box -h":
			return box, nil
		case "help -h":
			return "usage: tool help\n\nHelps.\n", nil
		}
		return "", errors.New("no such command")
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestPagesAreRead(t *testing.T) {
	t.Parallel()
	all := pages(t)
	if len(all) != 3 || all[0].Name != "tool" || all[1].Name != "tool box" || all[1].Summary != "open, close or paint boxes" {
		t.Fatalf("pages are %+v", all)
	}
	var titles []string
	for _, s := range all[1].Sections {
		titles = append(titles, s.Title)
	}
	if want := []string{"flags of open", "flags", "examples", "exit status of all"}; !slices.Equal(titles, want) {
		t.Errorf("sections are %q, want %q", titles, want)
	}
	if got := all[1].Sections[3].Text; got != "0 done; 1 failed, or not\nquite done." {
		t.Errorf("the exit status is %q", got)
	}
	if got := all[1].Of("tool-2").ManName(); got != "tool-2-box" {
		t.Errorf("under another name it is %q", got)
	}
}

func TestWhatAPageLacksIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		usage string
		want  []string
	}{
		"nothing":                   {box, nil},
		"no examples, no status":    {"usage: tool help\n\nHelps.\n", []string{"the section examples", "the section exit status"}},
		"no words":                  {"usage: tool x\n\nexamples:\n  tool x\n\nExit status: 0 done.\n", []string{"a sentence about what it does"}},
		"flags that nobody explain": {"usage: tool x [-a]\n\nDoes.\n\nexamples:\n  tool x\n\nExit status: 0 done.\n", []string{"the section flags"}},
	} {
		page, err := Parse(tt.usage)
		if err != nil || !slices.Equal(page.Lacks(), tt.want) {
			t.Errorf("%s: it lacks %q, want %q; %v", name, page.Lacks(), tt.want, err)
		}
	}
	if _, err := Parse("Usage of tool:\n"); err == nil {
		t.Error("what is no help was read")
	}
}

func TestCommandsHaveTheirOwnFlags(t *testing.T) {
	t.Parallel()
	got := map[string]Command{}
	for _, c := range Commands(pages(t)) {
		got[strings.Join(c.Route, " ")] = c
	}
	for route, want := range map[string]string{
		"": "config", "help": "", "box": "", "box open": "force in", "box paint": "colour dry",
	} {
		var names []string
		for _, f := range got[route].Flags {
			names = append(names, f.Name)
		}
		if flags := strings.Join(names, " "); flags != want {
			t.Errorf("%q has the flags %q, want %q", route, flags, want)
		}
	}
	if c := got["box paint"]; !slices.Equal(c.Choices, []string{"red", "green"}) || c.Summary != "make a box prettier, in any" {
		t.Errorf("box paint is %+v", c)
	}
	starter, err := Parse("usage: tool [flags] box [-dry]\n       tool [flags] help\n\nDoes.\n\nflags:\n  -config FILE  where\n")
	if all := Commands([]Page{starter}); err != nil || len(all) != 3 || all[0].Flags[0].Name != "config" || all[1].Flags[0].Name != "dry" || len(all[2].Flags) > 0 {
		t.Errorf("flags before the command are %+v, %v", all, err)
	}
	if f := got["box open"].Flags[1]; f.Value != "DIR" || f.Help != "look there" {
		t.Errorf("-in is %+v", f)
	}
}

// The script is run by bash itself, as at a prompt where Tab was hit.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: there is no bash")
	}
	script, err := Completion("bash", "my-tool", pages(t))
	if err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"my-tool ":                 "box help -config",
		"my-tool b":                "box",
		"my-tool box ":             "open paint",
		"my-tool box open -":       "-force -in",
		"my-tool -config f box pa": "paint",
		"my-tool box paint 7 r":    "red",
		"my-tool box open box ":    "-force -in",
		"my-tool nothing else b":   "box",
	} {
		words := strings.Split(typed, " ")
		cmd := exec.CommandContext(t.Context(), bash, "-c", script+"\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _my_tool; echo \"${COMPREPLY[*]}\"", "bash")
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: completed by %q, want %q; %v", typed, got, want, err)
		}
	}
}

func TestOtherShellsTakeTheirScripts(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"zsh":  "('box open') candidates=(-force -in)",
		"fish": `complete -c tool -n '__tool_at box open' -o in -r -d 'look there'`,
	} {
		script, err := Completion(shell, "tool", pages(t))
		if err != nil || !strings.Contains(script, want) {
			t.Errorf("%s: no %q in\n%s\n%v", shell, want, script, err)
		}
		found, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s to read its script", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), found, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	if _, err := Completion("tcsh", "tool", nil); err == nil {
		t.Error("a shell that is not known got a script")
	}
}

func TestManPageIsRoff(t *testing.T) {
	t.Parallel()
	all := pages(t)
	page := all[1].Man("2026-01-02", all)
	for _, want := range []string{
		".TH TOOL\\-BOX 1 \"2026-01-02\"", "tool\\-box \\- open, close or paint boxes", ".SH EXIT STATUS OF ALL\n", ".BR tool\\-help (1)",
		"\n  .paint's \\e next\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED: there is no groff to read the page")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-ww", "-man", "-Tascii", "-z")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
