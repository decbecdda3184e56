package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// TestCorpus classifies recorded output of failed commands of the real client, where it is
// available.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CRITICIZER_CORPUS_DIR")
	if dir == "" {
		t.Skip("corpus: CRITICIZER_CORPUS_DIR is not set; make corpus CORPUS=DIR sets it")
	}
	type recordedRun struct {
		Case, Stdout, Stderr string
		Stdout64             []byte `json:"stdout_b64"`
		Argv                 []string
		Exit                 int
	}
	for _, run := range readLines[recordedRun](t, filepath.Join(dir, "p4-fixtures/client-transcripts/error-transcripts.jsonl")) {
		if !slices.Contains(run.Argv, "-G") {
			continue
		}
		records, err := decodeAll(append([]byte(run.Stdout), run.Stdout64...))
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			err = cmp.Or(err, rec.Err())
		}
		if m, ok := classify(run.Stderr, ""); ok {
			err = cmp.Or[error](err, failure.Errorf(m.Class, "%s", m.Text))
		}
		if failed := run.Exit != 0; failed != (err != nil) || failed && failure.ClassOf(err) == failure.Unknown {
			t.Errorf("%s: exit %d, %v", run.Case, run.Exit, err)
		}
	}
}

// readLines decodes a file of JSON lines.
func readLines[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for line := range bytes.Lines(text) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}
