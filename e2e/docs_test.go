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

// A shownCommand is one that a page shows.
type shownCommand struct {
	page string
	line string   // as it stands
	args []string // the program first, under its own name
}

// programs are the commands that pages may show, by their names there; the
// empty ones are looked for elsewhere.
var programs = map[string]string{
	"criticizer": "operator", "starter": "starter", "criticizer-starter": "starter", "worker": "worker", "make": "", "temporal": "",
}

// placeholders are what pages write where a reader puts something else.
var placeholders = strings.NewReplacer("%changelist%", "4711", "CHANGELIST", "4711", "COMMAND", "deadletter", "JOB_ID", "6f1b0c2d-8a34-4c55-9a1e-0c7f3b2d1e10")

// pages reads all documentation.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(name string) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	read("README.md")
	err := fs.WalkDir(os.DirFS(".."), "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			read(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	inTable  = regexp.MustCompile(`^criticizer change-commit //\S+ "(.*)"$`) // a line of Perforce's trigger table
	oneOf    = regexp.MustCompile(`^([a-z]+)(\|[a-z]+)+$`)
	shellOne = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// commandsOf finds what a page has as code: indented, fenced, or in a sentence.
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

// shellWords splits a command line, up to where the shell does something else.
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
	return words
}

// TestDocumentedCommands has every command that a page shows parsed by the real
// program. It gets no configuration, so it ends before it does anything: with
// status 1, where wrong usage is 2. docs/install.md is run whole by
// TestInstallPage.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") {
			continue // generated; the tests of package operator run the examples
		}
		for _, d := range commandsOf(page, text) {
			found[cmp.Or(programs[d.args[0]], d.args[0])]++
			if problem := d.try(t); problem != "" {
				t.Errorf("%s: %s\nThe page shows what the program does not take: correct one of them.\n%s", d.page, d.line, problem)
			}
		}
	}
	t.Logf("commands by program: %v", found)
	for program, least := range map[string]int{"operator": 100, "starter": 5, "worker": 1, "make": 10, "temporal": 3} {
		if found[program] < least {
			t.Errorf("%d commands of %s were found: this test no longer reads the pages", found[program], program)
		}
	}
}

// The test above has teeth.
func TestWrongDocumentedCommandsAreFound(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"criticizer nonsense", "criticizer status 4711 --nonsense", "criticizer deadletter show 1 2", "criticizer deadletter nonsense",
		"starter change-commit -nonsense 4711", "starter change-commit 1 2", "/opt/criticizer/criticizer-starter --trigger nonsense",
		"worker --stages nonsense", "make nonsense", "temporal workflow nonsense --x 1", "temporal workflow reset --nonsense",
	} {
		for _, page := range []string{"    " + wrong + "\n", "```sh\nsudo " + wrong + " | cat\n```\n", "Call `" + wrong + "`.\n"} {
			found := commandsOf("page.md", page)
			if len(found) != 1 {
				t.Fatalf("%q: %d commands were found", page, len(found))
			}
			if found[0].try(t) == "" {
				t.Errorf("%q passes", page)
			}
		}
	}
}

// try returns what is wrong with a command, as its program says it, or "".
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
	if slices.Equal(args[:min(1, len(args))], []string{"man"}) {
		args = append(args, "-h") // it would write the pages
	}
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
		// A sentence may name a command without what it wants: then it has to exist.
	}
	return problem
}

// onlyNames reports whether no flag and no operand is among the words.
func onlyNames(words []string) bool {
	name := regexp.MustCompile(`^[a-z][a-z-]*$`)
	return !slices.ContainsFunc(words, func(w string) bool { return !name.MatchString(w) })
}

// withoutConfig leaves out what would have the command find a configuration or,
// as --trigger does, succeed whatever happens.
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

// tryMake asks make what it would do.
func (d shownCommand) tryMake(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", ".."}, d.args[1:]...)...).CombinedOutput()
	if err != nil {
		return string(out)
	}
	return ""
}

// tryTemporal asks for the help of the command, which parses its flags first.
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

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// Every link leads to a file that exists, and to a heading that it has.
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
				t.Errorf("%s: there is no %s", page, found[1])
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no heading of the link %s", page, target, found[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("%d links were found: this test no longer reads the pages", n)
	}
}

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// Every page of docs can be found from the index.
func TestEveryPageIsInTheIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	index := all["docs/README.md"]
	for page := range all {
		name, inDocs := strings.CutPrefix(page, "docs/")
		if strings.HasPrefix(name, "reference/") && name != "reference/criticizer.md" {
			continue // generated, and linked from there
		}
		if inDocs && page != "docs/README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not lead to %s: put it into the list of its reader", name)
		}
	}
}
