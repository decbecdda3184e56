package pack

import (
	_ "embed"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review/outline"
)

// A pathRule is an entry of paths.txt.
type pathRule struct {
	imports           []importRule
	partners, folders []template
}

type importRule struct {
	matches     *regexp.Regexp
	paths, dirs []template
}

// A template is the alternatives of a path, with $dir, $up and $stem for {dir}, {up} and
// {stem}.
type template []string

var placeholders = strings.NewReplacer("{dir}", "$dir", "{up}", "$up", "{stem}", "$stem")

// parseTemplate expands the alternatives before names of the depot, which may have any
// number of braces, are put into the template.
func parseTemplate(text string) template { return alternatives(placeholders.Replace(text)) }

//go:embed paths.txt
var pathsText string

// pathRules are the rules by the end of the name of a file.
var pathRules = parsePathRules(pathsText)

func parsePathRules(text string) map[string]*pathRule {
	byEnd := map[string]*pathRule{}
	var r *pathRule
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		value = strings.TrimSpace(value)
		var last *importRule
		if r != nil && len(r.imports) > 0 {
			last = &r.imports[len(r.imports)-1]
		}
		switch key {
		case "files":
			r = &pathRule{}
			for end := range strings.FieldsSeq(value) {
				byEnd[end] = r
			}
		case "import":
			r.imports = append(r.imports, importRule{matches: regexp.MustCompile(value)})
		case "path":
			last.paths = append(last.paths, parseTemplate(value))
		case "partner":
			r.partners = append(r.partners, parseTemplate(value))
		case "dir":
			last.dirs = append(last.dirs, parseTemplate(value))
		case "folder":
			r.folders = append(r.folders, parseTemplate(value))
		case "", "#":
		default:
			panic("paths.txt: unknown key " + key)
		}
	}
	return byEnd
}

// ruleOf returns the rule for a file; one without paths for an unknown language.
func ruleOf(depotPath string) *pathRule {
	if r := pathRules[strings.ToLower(path.Ext(depotPath))]; r != nil {
		return r
	}
	return &pathRule{}
}

// maxUp is how many folders above a file an import is looked for in.
const maxUp = 8

// testRoot is the root of the tests of Maven and Gradle.
const testRoot = "/src/test/"

// testWords are the words of a test in the name of a file.
var testWords = regexp.MustCompile(`^test_|(?:_test|_unittest|\.test|\.spec|Tests?)$`)

// isTest matches the name of a file with tests.
var isTest = regexp.MustCompile(`^test_.*\.pyi?$|(?:_test|_unittest|\.test|\.spec|Tests?)\.\w+$`)

// stem is the name of a file without its end and the words of a test.
func stem(depotPath string) string {
	name := path.Base(depotPath)
	return testWords.ReplaceAllString(strings.TrimSuffix(name, path.Ext(name)), "")
}

// paths returns the depot paths that the template stands for, nearest first.
func (t template) paths(file string, groups []string) []string {
	values := []string{"$stem", stem(file)}
	for i, g := range groups {
		n := "$" + strconv.Itoa(i)
		values = append(values, n+"s", strings.ReplaceAll(g, ".", "/"), n, g)
	}
	var out []string
	dir := path.Dir(file[1:])
	for range maxUp {
		fill := strings.NewReplacer(append(values, "$dir", dir, "$up", dir)...)
		for _, p := range t {
			// At least a depot and a name; .. may not leave the depot.
			if p = path.Clean(fill.Replace(p)); strings.Count(p, "/") > 1 || p == path.Dir(file[1:]) {
				out = append(out, "/"+p)
			}
		}
		if dir = path.Dir(dir); !strings.HasPrefix(t[0], "$up") || strings.Count(dir, "/") < 1 || dir == "/" {
			break
		}
	}
	return out
}

// alternatives expands {a,b}, also in each other.
func alternatives(s string) []string {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return []string{s}
	}
	begin := strings.LastIndexByte(s[:end], '{')
	if begin < 0 {
		return []string{s}
	}
	var out []string
	for a := range strings.SplitSeq(s[begin+1:end], ",") {
		out = append(out, alternatives(s[:begin]+a+s[end+1:])...)
	}
	return out
}

// A candidate is a path that may belong to a changed file.
type candidate struct {
	Lookup
	score int
}

// Scores of candidates: an import that names what a changed line uses is the best.
const (
	scoreNamed   = 100
	scorePartner = 60
	scoreImport  = 40
	scoreFolder  = 10
)

// candidatesOf returns the paths that may belong to a changed file, by importance.
func candidatesOf(file string, o outline.Outline, names map[string][]int) []candidate {
	r := ruleOf(file)
	var out []candidate
	add := func(score int, dir bool, templates []template, groups []string) {
		for _, t := range templates {
			paths := t.paths(file, groups)
			if strings.Contains(file, testRoot) {
				paths = append(paths, t.paths(strings.Replace(file, testRoot, "/src/main/", 1), groups)...)
			}
			for _, p := range paths {
				out = append(out, candidate{Lookup{p, dir}, score})
			}
		}
	}
	add(scorePartner, false, r.partners, nil)
	for _, i := range o.Imports[:min(len(o.Imports), maxImports)] {
		score := scoreImport
		for _, w := range words.FindAllString(i.Text, 64) {
			if names[w] != nil {
				score = scoreNamed
			}
		}
		for _, rule := range r.imports {
			if groups := rule.matches.FindStringSubmatch(i.Text); groups != nil {
				add(score, false, rule.paths, groups)
				add(score, true, rule.dirs, groups)
			}
		}
	}
	add(scoreFolder, true, r.folders, nil)
	return out
}

var words = regexp.MustCompile(`[\pL_$][\pL\p{Nd}_$]*`)
