package p4

import (
	"bufio"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

const jamDepot = "../../shared/p4-fixtures/jam-depot"

// A jamChange is what is recorded of one changelist of the public Jam depot.
type jamChange struct {
	Change review.Changelist
	User   string
	Desc   string
	Files  []struct {
		DepotFile, Action, Type, Digest string
		Rev                             int
	}
}

// TestJam fetches the whole recorded history of a real depot, 227 changelists,
// through the stand-in p4. Fetch checks the digest of every new revision; the
// test applies each diff to the text before and checks that again.
func TestJam(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: some 900 runs of the stand-in p4 are not a short test")
	}
	recorded := readJam(t)
	fetcher := jamFetcher(t)
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

	texts := make(map[string]string) // by path, as of the changelist that is looked at
	revisions := 0
	for i, want := range recorded {
		got := changes[i]
		if got.User != want.User || got.Description != want.Desc || len(got.Files) != len(want.Files) {
			t.Errorf("change %d: %s, %q, %d files; want %s, %q, %d", want.Change, got.User, got.Description, len(got.Files), want.User, want.Desc, len(want.Files))
			continue
		}
		for j, file := range got.Files {
			recorded := want.Files[j]
			if file.DepotPath != recorded.DepotFile || file.Revision != recorded.Rev || string(file.Action) != recorded.Action || file.Type != recorded.Type || file.Digest != recorded.Digest {
				t.Errorf("change %d: file %+v, want %+v", want.Change, file, recorded)
			}
			revisions++
			checkJamFile(t, file, texts)
		}
	}
	if revisions != 750 {
		t.Errorf("saw %d revisions, want 750", revisions)
	}
}

// checkJamFile applies a file's diff to the text that it was made from.
func checkJamFile(t *testing.T, file review.File, texts map[string]string) {
	t.Helper()
	name := fmt.Sprintf("%s#%d", file.DepotPath, file.Revision)
	switch {
	case file.Action == review.ActionDelete:
		if file.Skipped != review.SkipDeleted {
			t.Errorf("%s: skipped = %q, want deleted", name, file.Skipped)
		}
		return
	case file.Skipped != "" && !file.Skipped.IsEmpty():
		t.Errorf("%s: skipped = %q", name, file.Skipped)
		return
	}
	before := texts[file.DepotPath]
	if file.FromPath != "" {
		before = texts[file.FromPath]
	}
	after := patch(t, before, file.Diff)
	texts[file.DepotPath] = after
	if sum := fmt.Sprintf("%X", md5.Sum([]byte(after))); sum != file.Digest && !parseType(file.Type).hasKeywords() {
		t.Errorf("%s: the diff leads to a text of digest %s, want %s", name, sum, file.Digest)
	}
}

// patch applies hunks.
func patch(t *testing.T, before, diff string) string {
	t.Helper()
	old := splitLines(before)
	var after strings.Builder
	done := 0
	for hunk := range strings.SplitSeq("\n"+diff, "\n@@ ") {
		var a, aCount, b, bCount int
		if _, err := fmt.Sscanf(hunk, "-%d,%d +%d,%d @@", &a, &aCount, &b, &bCount); err != nil {
			continue // before the first hunk
		}
		from := a - min(aCount, 1)
		after.WriteString(strings.Join(old[done:from], ""))
		removed, added := sides("@@ " + strings.TrimSuffix(hunk, "\n") + "\n")
		if removed != strings.Join(old[from:from+aCount], "") {
			t.Fatalf("hunk does not apply: %q", hunk)
		}
		after.WriteString(added)
		done = from + aCount
	}
	after.WriteString(strings.Join(old[done:], ""))
	return after.String()
}

func readJam(t *testing.T) []jamChange {
	t.Helper()
	file, err := os.Open(filepath.Join(jamDepot, "jam-changelists.jsonl"))
	if err != nil {
		t.Skip("SKIPPED: the recorded Jam depot is not beside the repository (../shared): nothing is fetched from a real history")
	}
	defer func() { _ = file.Close() }()
	var changes []jamChange
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var change jamChange
		if err := json.Unmarshal(lines.Bytes(), &change); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, change)
	}
	if err := lines.Err(); err != nil || len(changes) != 227 {
		t.Fatalf("read %d changelists: %v", len(changes), err)
	}
	return changes
}

// jamFetcher builds the stand-in p4 and points it at the recorded depot, by the
// file beside it: p4 inherits no environment.
func jamFetcher(t *testing.T) *ChangeFetcher {
	t.Helper()
	dir := t.TempDir()
	p4 := filepath.Join(dir, "p4")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p4, "./p4sim").CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in p4: %v\n%s", err, out)
	}
	depot, err := filepath.Abs(jamDepot)
	if err != nil {
		t.Fatal(err)
	}
	conf := "P4SIM_DEPOT=" + depot + "\nP4SIM_STATE=" + filepath.Join(dir, "sim") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "p4sim.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	fetcher, err := New(slog.New(slog.DiscardHandler), Config{
		Command: p4, Port: "sim:1666", User: "criticizer", StateDir: filepath.Join(dir, "state"), Allowed: []string{"//depot/jam/..."},
		Selection: selection.Config{Include: []string{"**"}}, // generated files are compared, too
	})
	if err != nil {
		t.Fatal(err)
	}
	return fetcher
}
