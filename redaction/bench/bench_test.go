package bench

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"

	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/secret"
)

// corpusBytes is small, for gitleaks takes seconds per megabyte.
const corpusBytes = 6 << 20

func source(b *testing.B) []string {
	b.Helper()
	var out []string
	total := 0
	env, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("SKIPPED: the go command does not tell where the standard library is: %v", err)
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
	b.SetBytes(int64(total))
	b.ReportAllocs()
	return out
}

// BenchmarkCriticizer and BenchmarkGitleaks read the same files, one thread each
// (run with GOMAXPROCS=1).
func BenchmarkCriticizer(b *testing.B) {
	texts := source(b)
	p, err := redaction.New(redaction.Config{Key: secret.New(strings.Repeat("k", 32))})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, text := range texts {
			if _, err := p.String(text); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkGitleaks(b *testing.B) {
	texts := source(b)
	logging.Logger = zerolog.New(io.Discard)
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, text := range texts {
			d.DetectString(text)
		}
	}
}
