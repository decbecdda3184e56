package p4

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// TestCorpus checks the package against recordings of the real client and of a
// public depot, where they are available.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CRITICIZER_CORPUS_DIR")
	if dir == "" {
		t.Skip("corpus: CRITICIZER_CORPUS_DIR is not set; make corpus CORPUS=DIR sets it")
	}
	t.Run("Jam", func(t *testing.T) { testJam(t, filepath.Join(dir, "p4-fixtures/jam-depot")) })
	t.Run("failures", func(t *testing.T) {
		testFailures(t, filepath.Join(dir, "p4-fixtures/client-transcripts/error-transcripts.jsonl"))
	})
}

// testJam fetches the recorded history of the public Jam depot.
func testJam(t *testing.T, depot string) {
	type recordedChange struct {
		Change     review.Changelist
		User, Desc string
		Files      []struct {
			DepotFile, Action, Type, Digest string
			Rev                             int
		}
	}
	recorded := readLines[recordedChange](t, filepath.Join(depot, "jam-changelists.jsonl"))
	fetcher := simFetcher(t, depot)
	changes := make([]review.Change, len(recorded))
	var fetches errgroup.Group
	fetches.SetLimit(2)
	for i, want := range recorded {
		fetches.Go(func() (err error) {
			if changes[i], err = fetcher.Fetch(t.Context(), want.Change); err != nil {
				err = fmt.Errorf("fetch %d: %w", want.Change, err)
			}
			return err
		})
	}
	if err := fetches.Wait(); err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for i, want := range recorded {
		got := changes[i]
		if got.User != want.User || got.Description != want.Desc || len(got.Files) != len(want.Files) {
			t.Errorf("change %d = %+v, want %+v", want.Change, got, want)
			continue
		}
		for j, file := range got.Files {
			recorded := want.Files[j]
			if file.DepotPath != recorded.DepotFile || file.Revision != recorded.Rev || string(file.Action) != recorded.Action || file.Type != recorded.Type || file.Digest != recorded.Digest {
				t.Errorf("change %d: file %+v, want %+v", want.Change, file, recorded)
			}
			if file.Skipped != "" && file.Skipped != review.SkipDeleted && !file.Skipped.IsEmpty() {
				t.Errorf("change %d: %s is skipped: %q", want.Change, file.DepotPath, file.Skipped)
			}
			checkDiff(t, file, texts)
		}
	}
}

// testFailures classifies the recorded output of failed commands.
func testFailures(t *testing.T, name string) {
	type recordedRun struct {
		Case, Stdout, Stderr string
		Stdout64             []byte `json:"stdout_b64"`
		Argv                 []string
		Exit                 int
	}
	for _, run := range readLines[recordedRun](t, name) {
		if !slices.Contains(run.Argv, "-G") {
			continue
		}
		records, err := decodeAll(append([]byte(run.Stdout), run.Stdout64...))
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			err = cmp.Or(err, rec.err())
		}
		if rule, ok := classify(run.Stderr, ""); ok {
			err = cmp.Or(err, rule.err(0, 0))
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
