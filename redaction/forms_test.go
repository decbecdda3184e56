package redaction

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/forms.txt
var formsFile string

// Every form of a secret that is recognized by its context has positive and negative
// tests, by class: tables, lists, commands, documents (security 9.5.4).
func TestForms(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	for class := range strings.SplitSeq(formsFile, "\n== ") {
		name, lines, _ := strings.Cut(class, "\n")
		if strings.HasPrefix(name, "#") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			positives, negatives := 0, 0
			for line := range strings.Lines(lines) {
				line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "⏎", "\n")
				switch {
				case strings.HasPrefix(line, "+ "):
					positives++
					testMarked(t, p, line[2:])
				case strings.HasPrefix(line, "- "):
					negatives++
					if out := redacted(t, p, line[2:]); out != line[2:] {
						t.Errorf("%q became %q", line[2:], out)
					}
				case line != "":
					t.Errorf("a line of testdata/forms.txt begins with neither + nor -: %q", line)
				}
			}
			if positives == 0 || negatives == 0 {
				t.Errorf("%d forms to mask and %d to leave: want some of both", positives, negatives)
			}
		})
	}
}

// testMarked redacts a text in which secrets are marked. Every byte of a secret that
// is neither blank nor syntax has to be masked, and the number of lines has to stay.
func testMarked(t *testing.T, p *Pipeline, marked string) {
	t.Helper()
	text := strings.NewReplacer("«", "", "»", "").Replace(marked)
	out, marks, _, err := p.Explain(text, "", false)
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	masked := make([]bool, len(text))
	for _, m := range marks {
		for i := m.Start; i < m.End; i++ {
			masked[i] = true
		}
	}
	at := 0
	for before, rest, ok := strings.Cut(marked, "«"); ok; before, rest, ok = strings.Cut(rest, "«") {
		secret, after, _ := strings.Cut(rest, "»")
		at += len(before)
		for i := range len(secret) {
			if !masked[at+i] && strings.IndexByte(" \t\n\"'`,;+.\\", secret[i]) < 0 {
				t.Errorf("%q of %q is not masked: %q", secret[i:], text, out)
				break
			}
		}
		at += len(secret)
		rest = after
	}
	if a, b := strings.Count(text, "\n"), strings.Count(out.String(), "\n"); a != b {
		t.Errorf("lines of %q were %d, are %d", text, a, b)
	}
}

// A form may end in ..., which then skips nothing.
func TestFormEndsInSkip(t *testing.T) {
	t.Parallel()
	rule := "form compared \"VALUE\" unlike NAME ...\n\thit die if \"«Fj0rdWater9»\" unlike password;\n"
	if _, err := New(Config{Key: testKey, Rules: rule}); err != nil {
		t.Error(err)
	}
}
