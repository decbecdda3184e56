package redaction_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
)

// An identifier that tree-sitter finds on a line is still there after the redaction, or the line is hidden. The
// sources are testdata/code.txtar, the examples of package outline, and what the Go tree and this repository have in
// other languages than Go.
func TestIdentifiersAreNeverMasked(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	spans, lines, languages := 0, 0, map[string]bool{}
	check := func(path, text string) {
		text = strings.TrimRight(text, "\n") + "\n"
		o := outline.Of(t.Context(), path, text)
		if !o.Parsed {
			return
		}
		languages[filepath.Ext(path)] = true
		masked := redactFile(t, p, path, text)
		hidden := map[int]bool{}
		for _, h := range masked.Hidden {
			for line := h.First; line <= h.Last; line++ {
				hidden[line-1] = true // behind the header of the hunk
			}
		}
		spans += len(placeholder.FindAllString(masked.Diff.String(), -1))
		raw := strings.Split(text, "\n")
		for i, line := range strings.Split(strings.TrimSuffix(masked.Diff.String(), "\n"), "\n")[1:] {
			lines++
			want := map[string]int{}
			for _, name := range o.Names[i+1] {
				want[name]++
			}
			for name, n := range want {
				word := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
				n = min(n, len(word.FindAllString(raw[i], -1))) // the tail of a number may be a name to the grammar
				if got := len(word.FindAllString(placeholder.ReplaceAllString(line, ""), -1)); got < n && !hidden[i+1] {
					t.Errorf("%s:%d: the identifier %s is masked: %s", path, i+1, name, line)
				}
			}
		}
	}
	for _, file := range []string{"testdata/code.txtar", "../review/outline/testdata/examples.txtar"} {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			check(f.Name, marked.Replace(string(f.Data)))
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"..", filepath.Join(strings.TrimSpace(string(goroot)), "src", "runtime"), filepath.Join(strings.TrimSpace(string(goroot)), "src", "cmd", "cgo"), filepath.Join(strings.TrimSpace(string(goroot)), "misc")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "build") {
				return filepath.SkipDir
			} else if err != nil || d.IsDir() || filepath.Ext(path) == ".go" {
				return err
			}
			if data, err := os.ReadFile(path); err == nil && len(data) < 1<<20 {
				check(path, string(data))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d languages, %d lines, %d masked", len(languages), lines, spans)
	if len(languages) < 12 || lines < 5000 || spans < 12 {
		t.Errorf("%d languages, %d lines, %d masked ranges: want more", len(languages), lines, spans)
	}
}

// redactFile returns the redacted diff that adds a file.
func redactFile(t *testing.T, p *redaction.Pipeline, path, text string) redaction.File {
	t.Helper()
	change, err := p.Change(review.Change{Number: 1, Files: []review.File{{DepotPath: "//depot/" + filepath.Base(path), Action: review.ActionAdd, Diff: diffOf(text), Whole: review.Compress(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	return change.Files[0]
}

// What is between the marks in the code of several languages is masked, and nothing else.
func TestCodeOfOtherLanguages(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	for _, s := range sections(t, "code.txtar") {
		f := redactFile(t, p, s.name, marked.Replace(s.text))
		if wantMasked(t, diffOf(s.text), f.Diff.String()); len(f.Hidden) > 0 {
			t.Errorf("%s: hidden %v", s.name, f.Hidden)
		}
	}
}
