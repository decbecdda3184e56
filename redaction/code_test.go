package redaction_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v4"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// What is masked in the Go tree and in this repository is in a literal or a comment, or its
// line is hidden. go/scanner is the judge, not the lexer of the package.
func TestCodeIsNeverMasked(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	files, spans, hidden, lines := 0, 0, 0, 0
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	for _, root := range []string{"..", filepath.Join(tree, "net"), filepath.Join(tree, "crypto", "tls")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{".git", "build", "testdata"}, d.Name()):
				return filepath.SkipDir
			case filepath.Ext(path) != ".go":
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			lines += strings.Count(string(data), "\n")
			s, h := checkGo(t, p, path, string(data))
			spans, hidden = spans+s, hidden+h
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d lines, %d masked, %d hidden", files, lines, spans, hidden)
	if files < 500 || spans < 50 || hidden*1000 > lines {
		t.Errorf("%d files with %d masked ranges and %d hidden lines of %d: want more files, or fewer hidden lines", files, spans, hidden, lines)
	}
}

var placeholder = regexp.MustCompile(`\[REDACTED:[a-z0-9-]+:[0-9a-f]{4}\]`)

// checkGo fails if something of a Go file is masked that go/scanner takes for code and that
// is not on a hidden line. It returns how many ranges are masked, and how many lines hidden.
func checkGo(t *testing.T, p *redaction.Pipeline, path, text string) (masked, hidden int) {
	t.Helper()
	change, err := p.Change(review.Change{Number: 1, Files: []review.File{{DepotPath: "//depot/" + filepath.Base(path), Action: review.ActionAdd, Diff: diffOf(text), Whole: review.Compress(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	f := change.Files[0]
	hiddenLine := map[int]bool{}
	for _, h := range f.Hidden {
		for line := h.First; line <= h.Last; line++ {
			hiddenLine[line] = true
		}
	}
	covered := literalsOfGo(text)
	at := 0 // offset of the line in the text
	raw, red := strings.Split(text, "\n"), strings.Split(f.Diff.String(), "\n")[1:]
	for i, line := range raw {
		if i >= len(red) || "+"+line == red[i] {
			at += len(line) + 1
			continue
		}
		from := 0
		pieces := placeholder.Split(strings.TrimPrefix(red[i], "+"), -1)
		for k, piece := range pieces {
			start := from + strings.Index(line[from:], piece)
			if k == len(pieces)-1 {
				start = len(line) - len(piece)
			}
			if k > 0 {
				if masked++; !hiddenLine[i+2] && !(covered[at+from] && covered[at+max(from, start-1)]) {
					t.Errorf("%s:%d: code is masked: %q became %q", path, i+1, line, red[i])
				}
			}
			from = start + len(piece)
		}
		at += len(line) + 1
	}
	return masked, len(hiddenLine)
}

// literalsOfGo returns for each byte of a Go file whether it is in a literal or a comment.
func literalsOfGo(text string) []bool {
	covered := make([]bool, len(text)+1)
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return covered
		}
		if tok == token.STRING || tok == token.CHAR || tok == token.COMMENT {
			for i := range len(lit) {
				covered[min(len(text), file.Offset(pos)+i)] = true
			}
		}
	}
}

// A family is a format in which comments, blank lines and other text may be between a secret and
// what shows that it is one.
type family struct {
	file string
	// text has the marks: 1 between lines, 2 where a neighbor may be longer.
	text string
	// comment begins a comment line; "" if the format has none.
	comment string
	read    func(text string) (string, error)
}

const secretOfFamily = "Xk29fQpL7wZr"

var families = map[string]family{
	"YAML map":    {"a.yaml", "1passwords:\n1  ann: Tulip7garden\n1  note: 2x\n1  bob: Xk29fQpL7wZr\n1", "#", readYAMLText},
	"YAML secret": {"a.yaml", "apiVersion: vv\n1kind: Secret\n1metadata:\n1  name: 2x\n1stringData:\n1  a: Xk29fQpL7wZr\n1", "#", readYAMLText},
	"YAML list":   {"a.yaml", "1passwords:\n1  - Tulip7garden\n1  - 2x\n1  - Xk29fQpL7wZr\n1", "#", readYAMLText},
	"JSON map":    {"a.json", "{\"note\": \"2x\",\n1\"passwords\": {\n1\"ann\": \"Tulip7garden\",\n1\"bob\": \"Xk29fQpL7wZr\"\n1}}\n1", "", readJSONText},
	"Go map":      {"a.go", "package a\n1\nvar passwords = map[string]string{\n1\"note\": \"2x\",\n1\"bob\": \"Xk29fQpL7wZr\",\n1}\n1", "//", readGoText},
	"Go call":     {"a.go", "package a\n1\nvar _ = login(\n1\"bob\" + \"2x\",\n1\"Xk29fQpL7wZr\",\n1)\n1", "//", readGoText},
	"XML element": {"a.xml", "<a>\n1<note>2x</note>\n1<password>\n1Xk29fQpL7wZr\n1</password>\n1</a>\n1", "", readXMLText},
	"JSON list":   {"a.json", "{\"note\": \"2x\",\n1\"passwords\": [\n1\"Tulip7garden\",\n1\"Xk29fQpL7wZr\"\n1]}\n1", "", readJSONText},
	"TOML table":  {"a.toml", "note = \"2x\"\n1[passwords]\n1ann = \"Tulip7garden\"\n1bob = \"Xk29fQpL7wZr\"\n1", "#", readTOMLText},
	"HCL block":   {"a.tf", "note = \"2x\"\n1variable \"db\" {\n1  default = \"Xk29fQpL7wZr\"\n1  sensitive = true\n1}\n1", "#", readSame},
	"SQL rows":    {"a.sql", "-- 2x\n1INSERT INTO users (name, password) VALUES\n1('ann', 'Tulip7garden'),\n1('bob', 'Xk29fQpL7wZr');\n1", "--", readSame},
	"shell":       {"a.sh", "note=2x\n1export DB_PASSWORD=Xk29fQpL7wZr\n1", "#", readSame},
	"CSV column":  {"a.csv", "name,note,password\n1ann,2x,Tulip7garden\n1bob,y,Xk29fQpL7wZr\n1", "#", readSame},
}

// readSame is for formats in which comments and blank lines between rows and statements never change a value.
func readSame(text string) (string, error) { return text, nil }

func readTOMLText(text string) (string, error) {
	var v any
	err := toml.Unmarshal([]byte(text), &v)
	return fmt.Sprint(v), err
}

func readYAMLText(text string) (string, error) {
	var v any
	err := yaml.Unmarshal([]byte(text), &v)
	return fmt.Sprint(v), err
}

func readJSONText(text string) (string, error) {
	var v any
	err := json.Unmarshal([]byte(text), &v)
	return fmt.Sprint(v), err
}

func readGoText(text string) (string, error) {
	_, err := parser.ParseFile(token.NewFileSet(), "a.go", text, parser.AllErrors)
	covered := literalsOfGo(text)
	if i := strings.Index(text, secretOfFamily); err == nil && i >= 0 && covered[i] && covered[i-1] && text[i-1] == '"' {
		return secretOfFamily, nil
	}
	return "", err
}

func readXMLText(text string) (string, error) {
	var v struct {
		Password string `xml:"password"`
	}
	err := xml.Unmarshal([]byte(text), &v)
	return v.Password, err
}

// A secret is masked wherever comments, blank lines, carriage returns, 3 KB of filler and a longer
// neighbor are. A mutant counts if an independent parser reads the same value from it.
func TestTriviaHidesNoSecret(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutants := 0
			try := func(text string) {
				if got, err := f.read(text); err != nil || !strings.Contains(got, secretOfFamily) {
					return
				}
				mutants++
				out, err := p.Change(review.Change{Number: 1, Files: []review.File{{DepotPath: "//depot/" + f.file, Action: review.ActionAdd, Diff: diffOf(text), Whole: review.Compress(text)}}})
				if err != nil {
					t.Fatal(err)
				}
				if diff := out.Files[0].Diff.String(); strings.Contains(diff, secretOfFamily) {
					t.Errorf("the secret is not masked in\n%.1500s", diff)
				}
			}
			fillers := []string{"\n", "\n\n\n", strings.Repeat("\n", 3<<10)}
			if f.comment != "" {
				fillers = append(fillers, f.comment+" a note\n", "  "+f.comment+" it's \"x\n", f.comment+strings.Repeat(" filler", 450)+"\n")
			}
			places := strings.Count(f.text, "1")
			for place := range places {
				for _, filler := range fillers {
					text, seen := strings.Builder{}, 0
					for _, c := range strings.ReplaceAll(f.text, "2x", "x") {
						if c != '1' {
							text.WriteRune(c)
							continue
						}
						if seen == place {
							text.WriteString(filler)
						}
						seen++
					}
					out := strings.ReplaceAll(text.String(), "vv", "v1")
					try(out)
					try(strings.ReplaceAll(out, "\n", "\r\n"))
				}
			}
			plain := strings.ReplaceAll(f.text, "1", "")
			for _, size := range []int{10, 300, 3 << 10, 20 << 10} {
				try(strings.ReplaceAll(plain, "2x", strings.Repeat("x", size)))
				try(strings.ReplaceAll(plain, "2x", strings.Repeat("x y ", size/4)))
			}
			if mutants < 15 {
				t.Errorf("%d mutants have the value: want at least 15", mutants)
			}
		})
	}
}

// Five megabytes of anything are read. TestWorkIsLinear judges the time.
func TestFormatsFailSafely(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	for _, file := range []string{"a.yaml", "a.json", "a.toml", "a.xml", "a.csv", "a.sh", "a.tf"} {
		for _, unit := range []string{"[", "{\"a\":", "<a>", "a: &b [*b]\n", "\"", "a = {", "$(", "- - ", "{{ x }}\n", "a,\"b\n"} {
			text := strings.Repeat(unit, 20_000/len(unit)) + "\npassword = \"" + secretOfFamily + "\"\n"
			out, err := p.Change(review.Change{Number: 1, Files: []review.File{{DepotPath: "//depot/" + file, Action: review.ActionAdd, Diff: diffOf(text), Whole: review.Compress(text)}}})
			if err != nil {
				t.Errorf("%s of %q: %v", file, unit, err)
			} else if !strings.Contains(out.Files[0].Diff.String(), "[REDACTED:") {
				t.Errorf("%s of %q: nothing is masked", file, unit)
			}
		}
	}
}
