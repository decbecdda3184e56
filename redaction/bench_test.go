package redaction

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cputest"
)

// corpusBytes bounds how much of the standard library the benchmarks read.
const corpusBytes = 24 << 20

// source returns text of the Go standard library, file by file.
func source(tb testing.TB) []string {
	tb.Helper()
	var out []string
	total := 0
	env, err := exec.CommandContext(tb.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skipf("SKIPPED: go env GOROOT: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(env)), "src")
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || total > corpusBytes {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out = append(out, string(data))
		total += len(data)
		return nil
	})
	if err != nil || total == 0 {
		tb.Skipf("SKIPPED: the source of the Go standard library is not at %s: %v", root, err)
	}
	return out
}

// asDiff returns a unified diff of text in which every eighth line is changed.
func asDiff(text string) string {
	var b strings.Builder
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	for at := 0; at < len(lines); at += 40 {
		hunk := lines[at:min(len(lines), at+40)]
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", at+1, len(hunk), at+1, len(hunk))
		for i, line := range hunk {
			line = strings.TrimRight(line, "\n") + "\n"
			switch i % 8 {
			case 3:
				b.WriteString("-" + line + "+" + line)
			default:
				b.WriteString(" " + line)
			}
		}
	}
	return b.String()
}

func benchmarkRedact(b *testing.B, isDiff bool, texts []string) {
	b.Helper()
	p := newTestPipeline(b, Config{})
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	took := cputest.Time(func() {
		for b.Loop() {
			for _, t := range texts {
				var out Text
				pl := &payload{Pipeline: p, scope: "bench"}
				pl.add(t, &out).isDiff = isDiff
				if err := pl.redact(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	// Per second of processor time, independent of other programs.
	b.ReportMetric(float64(size)*float64(b.N)/1e6/took.Seconds(), "MB/cpu-s")
}

// BenchmarkSource redacts files of the Go standard library.
func BenchmarkSource(b *testing.B) { benchmarkRedact(b, false, source(b)) }

// BenchmarkDiff redacts diffs of them.
func BenchmarkDiff(b *testing.B) {
	texts := source(b)
	for i := range texts {
		texts[i] = asDiff(texts[i])
	}
	benchmarkRedact(b, true, texts)
}

// BenchmarkNew builds a pipeline, as every process does once.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newTestPipeline(b, Config{})
	}
}
