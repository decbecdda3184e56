package contextcoverage

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// git is the directory of a repository.
type git string

func (g git) output(stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", string(g)}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

func (g git) lines(args ...string) ([]string, error) {
	out, err := g.output("", args...)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), err
}

// blob returns a text; empty for the hash of no file.
func (g git) blob(hash string) (string, error) {
	if strings.Trim(hash, "0") == "" {
		return "", nil
	}
	return g.output("", "cat-file", "blob", hash)
}

// tree returns the files of a commit with their hashes.
func (g git) tree(commit string) (map[string]string, error) {
	rows, err := g.lines("ls-tree", "-r", commit)
	files := map[string]string{}
	for _, row := range rows {
		if about, name, ok := strings.Cut(row, "\t"); ok {
			if fields := strings.Fields(about); fields[1] == "blob" {
				files[name] = fields[2]
			}
		}
	}
	return files, err
}

// A tag is a definition that ctags found.
type tag struct {
	name, kind string
	line, end  int
}

func (t tag) isFunction() bool { return t.kind == "function" || t.kind == "method" }

// local reports whether the tag is no definition that others can use.
func (t tag) local() bool {
	return slices.Contains([]string{"local", "parameter", "package", "namespace", "module", "header", "label", "unknown", "receiver", "packageName"}, t.kind)
}

// A place is where a name is defined.
type place struct {
	path string
	line int
}

// A tagger runs ctags, once for each version of a file.
type tagger struct {
	dir    string
	byHash map[string]map[string][]int // lines by name
	names  map[string]map[string]bool  // hashes by name
}

func newTagger(t *testing.T) *tagger {
	t.Helper()
	if out, err := exec.Command("ctags", "--version").Output(); err != nil || !strings.Contains(string(out), "Universal Ctags") {
		t.Fatalf("run ctags: %v: install universal-ctags", err)
	}
	return &tagger{t.TempDir(), map[string]map[string][]int{}, map[string]map[string]bool{}}
}

// run returns the tags of the files of a folder, by path.
func (t *tagger) run(dir string, flags ...string) (map[string][]tag, error) {
	cmd := exec.Command("ctags", append(flags, "-R", "-f", "-", "--sort=no", "--excmd=number", "--fields=+neK", "--extras=-{reference}", "--langmap=C++:+.h", ".")...)
	cmd.Dir, cmd.Stderr = dir, nil
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run ctags: %w", err)
	}
	tags := map[string][]tag{}
	for row := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if len(fields) < 4 || strings.HasPrefix(row, "!") {
			continue
		}
		one := tag{name: fields[0], kind: fields[3]}
		for _, f := range fields[4:] {
			if n, ok := strings.CutPrefix(f, "line:"); ok {
				one.line, _ = strconv.Atoi(n)
			} else if n, ok := strings.CutPrefix(f, "end:"); ok {
				one.end, _ = strconv.Atoi(n)
			}
		}
		file := path.Clean(fields[1])
		tags[file] = append(tags[file], one)
	}
	return tags, nil
}

// of returns all tags of one text, locals and parameters included.
func (t *tagger) of(name, text string) ([]tag, error) {
	dir := filepath.Join(t.dir, "one")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, path.Base(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	tags, err := t.run(dir, "--kinds-all=*")
	list := tags[path.Base(name)]
	if parsed, errGo := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution); path.Ext(name) == ".go" && errGo == nil {
		addEnds(list, parsed, text)
	}
	return list, err
}

// addEnds sets the ends of functions, which ctags does not report for Go.
func addEnds(tags []tag, parsed *ast.File, text string) {
	lineAt := func(p token.Pos) int { return strings.Count(text[:int(p-parsed.FileStart)], "\n") + 1 }
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			for i := range tags {
				if tags[i].name == f.Name.Name && tags[i].line == lineAt(f.Name.Pos()) {
					tags[i].kind, tags[i].end = "function", lineAt(f.End()-1)
				}
			}
		}
	}
}

// read reads the files of a tree that were not read before.
func (t *tagger) read(g git, tree map[string]string) error {
	dir := filepath.Join(t.dir, "tree")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	known := map[string]string{} // file to hash
	for name, hash := range tree {
		if t.byHash[hash] != nil || !source.MatchString(name) {
			continue
		}
		t.byHash[hash] = map[string][]int{}
		text, err := g.blob(hash)
		if err != nil {
			return err
		}
		file := hash + path.Ext(name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return err
		}
		known[file] = hash
	}
	if len(known) == 0 {
		return nil
	}
	tags, err := t.run(dir, "--kinds-C=+p", "--kinds-C++=+p")
	for file, list := range tags {
		for _, one := range list {
			if one.local() || slices.Contains([]string{"member", "field", "variable", "property"}, one.kind) {
				continue // the text does not show the type of x in x.len
			}
			hash := known[file]
			t.byHash[hash][one.name] = append(t.byHash[hash][one.name], one.line)
			if t.names[one.name] == nil {
				t.names[one.name] = map[string]bool{}
			}
			t.names[one.name][hash] = true
		}
	}
	return err
}

// elsewhere returns where a tree defines a name, except in one file.
func (t *tagger) elsewhere(name, except string, tree map[string]string) (places []place) {
	if t.names[name] == nil {
		return nil
	}
	for file, hash := range tree {
		if file != except && path.Ext(file) != "" && t.names[name][hash] && sameFamily(file, except) {
			for _, line := range t.byHash[hash][name] {
				places = append(places, place{file, line})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.path, b.path) })
	return places
}

// source matches the files of the languages that are measured.
var source = regexp.MustCompile(`\.(c|h|cc|cpp|cxx|hpp|hh|go|java|py|js|ts|cs|rs|kt|lua)$`)

// sameFamily reports whether one file can use names of the other.
func sameFamily(a, b string) bool {
	family := func(file string) string {
		switch ext := path.Ext(file); ext {
		case ".h", ".c", ".cc", ".cpp", ".cxx", ".hpp", ".hh":
			return ".c"
		case ".kt":
			return ".java"
		default:
			return ext
		}
	}
	return family(a) == family(b)
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	hunk       = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)`)
	// silent matches comments and literals.
	silent = map[bool]*regexp.Regexp{
		true:  regexp.MustCompile(`(?s)"""[^\x00]*?"""|'''[^\x00]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*`),
		false: regexp.MustCompile("(?s)/\\*.*?\\*/|//[^\\n]*|\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])*'|`[^`]*`"),
	}
)

// namesOn returns the identifiers on lines, without those in comments and literals.
func namesOn(file, text string, lines map[int]bool) []string {
	code := silent[path.Ext(file) == ".py"].ReplaceAllStringFunc(text, func(s string) string { return " " + strings.Repeat("\n", strings.Count(s, "\n")) })
	seen := map[string]bool{}
	n := 0
	var names []string
	for line := range strings.Lines(code) {
		if n++; !lines[n] || strings.HasPrefix(strings.TrimSpace(line), "#include") {
			continue
		}
		for _, name := range identifier.FindAllString(line, -1) {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// readDiff returns the new lines that a diff shows, and those that it adds.
func readDiff(diff string) (shown, added map[int]bool) {
	shown, added = map[int]bool{}, map[int]bool{}
	n := 0
	for line := range strings.Lines(diff) {
		if m := hunk.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
			continue
		}
		if line[0] == '+' || line[0] == ' ' {
			shown[n] = true
			added[n] = line[0] == '+'
			n++
		}
	}
	return shown, added
}

func lineOf(text string, n int) string {
	for ; n > 1; n-- {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return ""
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
