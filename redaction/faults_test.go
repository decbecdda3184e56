package redaction_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// section is one section of an archive in the format of txtar.
type section struct{ name, text string }

func sections(t *testing.T, file string) (all []section) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n-- ")[1:] {
		name, text, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("%s: a section has no end of its head: %q", file, part)
		}
		all = append(all, section{name, text + "\n"})
	}
	return all
}

func newPipeline(t *testing.T) *redaction.Pipeline {
	t.Helper()
	p, err := redaction.New(redaction.Config{Key: secret.New("0123456789abcdef0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var marked = strings.NewReplacer("«", "", "»", "")

// wantMasked fails unless exactly what is between the marks « and » is masked.
func wantMasked(t *testing.T, text, got string) {
	t.Helper()
	var want strings.Builder
	rest := text
	for before, after, ok := strings.Cut(rest, "«"); ok; before, after, ok = strings.Cut(rest, "«") {
		_, rest, _ = strings.Cut(after, "»")
		want.WriteString(regexp.QuoteMeta(before) + `\[REDACTED:[a-z-]+:[0-9a-f]{4}\]`)
	}
	if !regexp.MustCompile("^" + want.String() + regexp.QuoteMeta(rest) + "$").MatchString(got) {
		t.Errorf("the text with marks\n%s\nbecame\n%s", text, got)
	}
}

// Faults that were reported stay mended, whatever reads the text.
func TestFaults(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	for _, s := range sections(t, "faults.txtar") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			out, err := p.String(marked.Replace(s.text))
			if err != nil {
				t.Fatal(err)
			}
			wantMasked(t, s.text, out.String())
		})
	}
}

// A value that an author has masked in one place hides no code in another: it is masked
// where it is a whole literal or token, and a file with masked code counts as not read.
// A section "change" begins a change; "hidden" before a path marks a file that is not read.
func TestMaskedCode(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	var change review.Change
	var want []section
	check := func(t *testing.T) {
		sealed, err := p.Change(change)
		if err != nil {
			t.Fatal(err)
		}
		data, err := p.Seal(sealed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Unseal(data)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range got.Files {
			wantMasked(t, diffOf(want[i].text), f.Diff.String())
			if hidden := strings.HasPrefix(want[i].name, "hidden "); (len(f.Hidden) > 0) != hidden {
				t.Errorf("%s: hidden is %v, want %t:\n%s", f.Path, f.Hidden, hidden, f.Diff)
			}
		}
	}
	all := append(sections(t, "maskedcode.txtar"), section{name: "change"})
	name := ""
	for _, s := range all {
		if !strings.HasPrefix(s.name, "change") {
			text := marked.Replace(s.text)
			change.Files = append(change.Files, review.File{
				DepotPath: "//depot/" + s.name[strings.LastIndexByte(s.name, ' ')+1:], Action: review.ActionAdd, Type: "text", Diff: diffOf(text), Whole: review.Compress(text),
			})
			want = append(want, s)
			continue
		}
		if len(want) > 0 {
			t.Run(name, check)
		}
		name = strings.TrimPrefix(s.name, "change ")
		change, want = review.Change{Number: 7, Description: s.text}, nil
	}
}

// diffOf returns the diff of a new file.
func diffOf(text string) string {
	return fmt.Sprintf("@@ -0,0 +1,%d @@\n+", strings.Count(text, "\n")) + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n"
}

// Of the spans in real changes, those that hands judged right are masked, and nothing else is.
func TestRealChanges(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	right, wrong, lines := 0, 0, 0
	for _, s := range sections(t, "realdiffs.txtar") {
		text := marked.Replace(s.text)
		change, err := p.Change(review.Change{Number: 1, Files: []review.File{{DepotPath: "//depot/" + s.name, Action: review.ActionAdd, Diff: diffOf(text), Whole: review.Compress(text)}}})
		if err != nil {
			t.Fatal(err)
		}
		wantMasked(t, diffOf(s.text), change.Files[0].Diff.String())
		found := strings.Count(change.Files[0].Diff.String(), "[REDACTED:")
		right += strings.Count(s.text, "«")
		wrong += max(0, found-strings.Count(s.text, "«"))
		lines += strings.Count(text, "\n")
	}
	t.Logf("%d right, %d wrong, %.1f wrong for 1,000 changed lines", right, wrong, 1000*float64(wrong)/float64(lines))
}
