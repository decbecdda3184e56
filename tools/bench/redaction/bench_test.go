// Package redaction compares the redaction pipeline with gitleaks as a library, on the
// same bytes in the same run. The product does not depend on gitleaks.
package redaction

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"

	"github.com/criticizer/criticizer/internal/cputest"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
)

// rounds is how often both engines are measured in turn.
const rounds = 5

// corpusBytes is small, because gitleaks takes seconds per megabyte.
const corpusBytes = 6 << 20

// BenchmarkRedaction reads the same bytes with both engines, one thread each
// (run with GOMAXPROCS=1): files of the Go standard library, and diffs of them.
// The rows are source/criticizer, source/gitleaks, diff/criticizer and
// diff/gitleaks. The ratio of their MB/cpu-s is how many times faster this package is.
func BenchmarkRedaction(b *testing.B) {
	p, err := redaction.New(redaction.Config{Key: secret.New(strings.Repeat("k", 32))})
	if err != nil {
		b.Fatal(err)
	}
	logging.Logger = zerolog.New(io.Discard)
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	texts := source(b)
	diffs := make([]string, len(texts))
	for i, text := range texts {
		diffs[i] = everyEighthChanged(text)
	}
	type row struct {
		name  string
		texts []string
		diff  bool
	}
	for _, row := range slices.Repeat([]row{{"source", texts, false}, {"diff", diffs, true}}, rounds) {
		b.Run(row.name+"/criticizer", func(b *testing.B) {
			read(b, row.texts, func(text string) error {
				_, _, _, err := p.Explain(text, "", row.diff)
				return err
			})
		})
		b.Run(row.name+"/gitleaks", func(b *testing.B) {
			read(b, row.texts, func(text string) error {
				d.DetectString(text)
				return nil
			})
		})
	}
}

func read(b *testing.B, texts []string, detect func(text string) error) {
	b.Helper()
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	took := cputest.Time(func() {
		for b.Loop() {
			for _, text := range texts {
				if err := detect(text); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	// Per second of processor time, independent of other programs.
	b.ReportMetric(float64(size)*float64(b.N)/1e6/took.Seconds(), "MB/cpu-s")
}

// source returns files of the Go standard library.
func source(b *testing.B) []string {
	b.Helper()
	var out []string
	total := 0
	env, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("SKIPPED: go env GOROOT: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(env)), "src", "net")
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || total > corpusBytes {
			return err
		}
		data, err := os.ReadFile(path)
		out, total = append(out, string(data)), total+len(data)
		return err
	})
	if err != nil || total == 0 {
		b.Skipf("SKIPPED: no source of the Go standard library at %s: %v", root, err)
	}
	return out
}

// everyEighthChanged returns a unified diff, in one hunk, in which every eighth line
// of text is removed and added again.
func everyEighthChanged(text string) string {
	n := strings.Count(text, "\n")
	var diff strings.Builder
	fmt.Fprintf(&diff, "@@ -1,%d +1,%d @@\n", n, n)
	i := 0
	for line := range strings.Lines(text) {
		if i++; i%8 == 0 {
			diff.WriteString("-" + line + "+" + line)
		} else {
			diff.WriteString(" " + line)
		}
	}
	return diff.String()
}
