package mail

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"
	"golang.org/x/tools/txtar"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// realCode returns lines of real code by language: the examples of the outline, the sources
// of the cases of the evaluation, and Go of this repository. It leaves out lines that a mail
// changes on purpose: with a link or a hidden character, and long ones.
func realCode(t *testing.T) map[string][]string {
	t.Helper()
	code := map[string][]string{}
	add := func(name, text string) {
		for l := range strings.Lines(text) {
			if l = strings.TrimSuffix(l, "\n"); strings.TrimSpace(l) != "" && len(l) <= maxQuoteLine && !strings.Contains(l, "://") && !strings.Contains(l, "www.") && !strings.ContainsFunc(l, plain.Invisible) {
				code[path.Ext(name)] = append(code[path.Ext(name)], l)
			}
		}
	}
	archives, _ := filepath.Glob("../../eval/builtin/*.txtar")
	added := regexp.MustCompile(`(?m)^\+[^+].*$`)
	for _, name := range append(archives, "../../review/outline/testdata/examples.txtar", "../../redaction/testdata/code.txtar") {
		archive, err := txtar.ParseFile(name)
		testkit.NoError(t, err)
		for _, f := range archive.Files {
			if !strings.HasSuffix(f.Name, ".diff") {
				if ext := path.Ext(f.Name); len(ext) > 1 && ext != ".yaml" && ext != ".txt" {
					add(f.Name, string(f.Data))
				}
				continue
			}
			for _, diff := range strings.Split(string(f.Data), "\n+++ ")[1:] {
				name, _, _ := strings.Cut(diff, "\n")
				for _, l := range added.FindAllString(diff, -1) {
					add(name, l[1:])
				}
			}
		}
	}
	sources, _ := filepath.Glob("*.go")
	for _, name := range sources {
		data, err := os.ReadFile(name)
		testkit.NoError(t, err)
		add(name, string(data))
	}
	return code
}

// Whoever copies code from a mail gets the code, in either part and every language.
func TestRealCodeIsTheCode(t *testing.T) {
	t.Parallel()
	languages, total := 0, 0
	for ext, lines := range realCode(t) {
		languages++
		for begin := 0; begin < len(lines); begin += maxQuoteLines {
			quoted := lines[begin:min(begin+maxQuoteLines, len(lines))]
			total += len(quoted)
			r := findingsReport()
			r.Findings = []review.Finding{{
				Path: "//depot/a" + ext, StartLine: 1, EndLine: len(quoted), Severity: review.SeverityLow, Title: "t", Explanation: "e", Quote: strings.Join(quoted, "\n"),
			}}
			m := render(t, r)
			shown := codeOf(t, m.HTML)
			for i, l := range dedent(quoted) {
				if !strings.Contains(m.Text, fmt.Sprintf("%6d > %s\n", i+1, l)) {
					t.Errorf("%s: the text lacks %q", ext, l)
				}
				if i >= len(shown) || shown[i] != l {
					t.Fatalf("%s: line %d of the HTML is not %q: %q", ext, i, l, shown)
				}
			}
		}
	}
	if languages < 10 || total < 1000 {
		t.Errorf("%d lines of %d languages, want 1000 of 10", total, languages)
	}
}

// codeOf returns the lines of the code in a page, as a mail program copies them.
func codeOf(t *testing.T, page string) []string {
	t.Helper()
	root, err := xhtml.Parse(strings.NewReader(page))
	testkit.NoError(t, err)
	var text strings.Builder
	for n := range root.Descendants() {
		for p := n.Parent; n.Type == xhtml.TextNode && p != nil; p = p.Parent {
			if p.Data == "pre" && strings.Contains(fmt.Sprint(p.Attr), "class code") {
				text.WriteString(n.Data)
			}
		}
	}
	return strings.Split(text.String(), "\n")
}
