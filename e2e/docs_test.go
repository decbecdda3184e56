package e2e

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A shownCommand is a command on a documentation page.
type shownCommand struct {
	page string
	line string   // as shown
	args []string // args[0] is the base name of the program
}

// programs maps the names of checked programs on pages to those of our binaries, empty
// for other programs.
var programs = map[string]string{
	"criticizer": "criticizer", "starter": "starter", "criticizer-starter": "starter", "criticizer-worker": "worker", "make": "", "temporal": "",
}

// placeholders replaces what a reader has to replace.
var placeholders = strings.NewReplacer("%changelist%", "4711", "CHANGELIST", "4711", "COMMAND", "deadletter", "JOB_ID", "6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10")

// pages returns all documentation by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "tools/triage/README.md"} {
		all[name] = readFile(t, "../"+name)
	}
	for _, dir := range []string{"docs", "rewrite/docs"} {
		err := fs.WalkDir(os.DirFS(".."), dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".md") {
				all[name] = readFile(t, filepath.Join("..", name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	inTable  = regexp.MustCompile(`^criticizer change-commit //\S+ "(.*)"$`) // a line of Perforce's trigger table
	oneOf    = regexp.MustCompile(`^([a-z]+)(\|[a-z]+)+$`)
	shellOne = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// commandsOf finds the commands of a page in indented code, code blocks and code spans.
func commandsOf(page, text string) []shownCommand {
	var all []shownCommand
	add := func(code string) {
		if found := inTable.FindStringSubmatch(code); found != nil {
			code = found[1]
		}
		if args := shellWords(code); len(args) > 1 {
			args[0] = filepath.Base(args[0])
			if _, ours := programs[args[0]]; ours {
				all = append(all, shownCommand{page, code, args})
			}
		}
	}
	fenced := false
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			add(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
		if !fenced {
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				add(span[1])
			}
		}
	}
	return all
}

// shellWords splits a command line up to the first operator or comment.
func shellWords(code string) []string {
	var words []string
	for _, w := range shellOne.FindAllString(code, -1) {
		if slices.Contains([]string{"|", "<", ">", ";", "&&", "&", "#"}, w) {
			break
		}
		words = append(words, oneOf.ReplaceAllString(placeholders.Replace(strings.Trim(w, `"'`)), "$1"))
	}
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	if len(words) > 4 && slices.Equal(words[:4], []string{"docker", "compose", "run", "--rm"}) {
		words = words[4:] // a service with the name of its program
	}
	return words
}

// TestDocumentedCommands runs every documented command with the real program, but without
// a configuration: a valid command exits with status 1 before it has an effect, invalid
// usage with status 2. TestInstallPage runs docs/install.md completely.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") {
			continue // generated; the tests of package criticizer run the examples
		}
		for _, d := range commandsOf(page, text) {
			found[cmp.Or(programs[d.args[0]], d.args[0])]++
			if problem := d.try(t); problem != "" {
				t.Errorf("%s: %s\nThe program rejects the command: correct the page or the program.\n%s", d.page, d.line, problem)
			}
		}
	}
	t.Logf("commands by program: %v", found)
	for program, least := range map[string]int{"criticizer": 100, "starter": 5, "worker": 1, "make": 10, "temporal": 3} {
		if found[program] < least {
			t.Errorf("%d commands of %s were found: this test does not read the pages", found[program], program)
		}
	}
}

// try returns the error message of the program, or "" if the command is valid.
func (d shownCommand) try(t *testing.T) string {
	t.Helper()
	switch d.args[0] {
	case "make":
		return d.tryMake(t)
	case "temporal":
		return d.tryTemporal(t)
	}
	return d.tryOurs(t)
}

// tryOurs runs one of our commands without a configuration.
func (d shownCommand) tryOurs(t *testing.T) string {
	t.Helper()
	args := withoutConfig(d.args[1:])
	problem := ""
	for _, typed := range [][]string{append([]string{"--config", "missing.yaml"}, args...), append(slices.Clone(args), "-h")} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(binDir, programs[d.args[0]]), typed...)
		cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() < 2 {
			return ""
		}
		problem += string(out)
		if !onlyNames(args) {
			break
		}
		// A sentence may name a command without its operands: then -h must succeed.
	}
	return problem
}

// onlyNames reports whether all words are names of commands.
func onlyNames(words []string) bool {
	name := regexp.MustCompile(`^[a-z][a-z-]*$`)
	return !slices.ContainsFunc(words, func(w string) bool { return !name.MatchString(w) })
}

// withoutConfig removes flags that name a configuration, and --trigger, with which every
// command succeeds.
func withoutConfig(args []string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-config", "--config":
			i++
		case "--trigger", "...":
		default:
			rest = append(rest, args[i])
		}
	}
	return rest
}

// tryMake has make print the commands of the target.
func (d shownCommand) tryMake(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", ".."}, d.args[1:]...)...).CombinedOutput()
	if err != nil {
		return string(out)
	}
	return ""
}

// tryTemporal prints the help of the command, which parses its flags first.
func (d shownCommand) tryTemporal(t *testing.T) string {
	t.Helper()
	args := slices.DeleteFunc(slices.Clone(d.args[1:]), func(w string) bool { return w == "..." })
	out, err := exec.CommandContext(t.Context(), temporalCommand(t), append(args, "--help")...).CombinedOutput()
	route := "temporal"
	for _, w := range args {
		if !onlyNames([]string{w}) {
			break
		}
		route += " " + w
	}
	if err != nil || !strings.Contains(string(out), "Usage:\n  "+route) {
		return string(out)
	}
	return ""
}

// A named file of the repository on a page, perhaps with the name of a declaration in it.
var namedFile = regexp.MustCompile("`([a-zA-Z0-9_.-]+(?:/[a-zA-Z0-9_.-]+)*\\.(?:go|sql|sh|yml|rules))(?::(?:([A-Za-z]+)\\.)?([A-Za-z_]+))?`")

// Every file, function and test that an engineer's page names exists.
func TestNamedFilesExist(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"docs/architecture.md", "docs/requirements.md", "docs/threat-model.md", "docs/measured.md", "CONTRIBUTING.md"} {
		found := namedFile.FindAllStringSubmatch(readFile(t, "../"+page), -1)
		for _, name := range found {
			file, receiver, declared := name[1], name[2], name[3]
			if !strings.Contains(file, "/") && declared == "" {
				continue // beside the file that was named before
			}
			text, err := os.ReadFile(filepath.Join("..", file))
			if err != nil {
				t.Errorf("%s: %s does not exist", page, file)
				continue
			}
			is := `(?m)^(func (\([^)]*\b` + receiver + `(\[\w+\])?\) )?|type |var |const |\t)` + declared + `\b`
			if strings.HasSuffix(file, ".go") && declared != "" && !regexp.MustCompile(is).Match(text) {
				t.Errorf("%s: %s declares no %s", page, file, declared)
			}
		}
		t.Logf("%s names %d files", page, len(found))
	}
}

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// Every relative link leads to an existing file and heading.
func TestDocumentationLinks(t *testing.T) {
	t.Parallel()
	n := 0
	for page, text := range pages(t) {
		for _, found := range pageLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(found[1], "#")
			target := filepath.Join("..", filepath.Dir(page), file)
			if file == "" {
				target = filepath.Join("..", page)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s does not exist", page, found[1])
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no heading of the link %s", page, target, found[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("%d links were found: this test does not read the pages", n)
	}
}

// anchors lists the headings of a page in the form of links.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	var all []string
	for _, found := range heading.FindAllStringSubmatch(readFile(t, file), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}
