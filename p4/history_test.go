package p4

import (
	"crypto/md5"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// TestHistory fetches all changelists of a small depot through p4sim and applies
// the diffs: they must lead to the contents whose digests the server reports.
func TestHistory(t *testing.T) {
	t.Parallel()
	fetcher := simFetcher(t, "testdata/history.txtar")
	list, upTo, err := fetcher.Submitted(t.Context(), 100)
	if err != nil || upTo != 107 || !slices.Equal(list, []review.Changelist{101, 103, 104, 107}) {
		t.Fatalf("submitted = %v up to %d, %v", list, upTo, err)
	}
	texts := make(map[string]string)
	var got []string
	for _, number := range list {
		change, err := fetcher.Read(t.Context(), number, review.ReadOptions{})
		testkit.NoError(t, err)
		for _, file := range change.Files {
			got = append(got, fmt.Sprintf("%d %s#%d %s %s", number, file.DepotPath, file.Revision, file.Action, file.Skipped))
			checkDiff(t, file, texts)
		}
		if number != 103 {
			continue
		}
		if change.User != "bob" || change.Description != "Print two.\n" || !slices.Equal(change.Jobs, []string{"BUG-7\nThe tool prints one."}) {
			t.Errorf("change = %+v", change)
		}
		if len(change.Recipients) != 1 || change.Recipients[0] != (review.Recipient{User: "bob", Address: "bob@example.com", Role: review.RoleAuthor}) {
			t.Errorf("recipients = %v", change.Recipients)
		}
	}
	want := []string{
		"101 //depot/tool/100% @home#1.txt#1 add ", "101 //depot/tool/logo.png#1 add binary", "101 //depot/tool/main.c#1 add ", "101 //depot/tool/util.c#1 add ",
		"103 //depot/tool/100% @home#1.txt#2 edit ", "103 //depot/tool/main.c#2 edit ",
		"104 //depot/release/main.c#1 branch " + string(review.SkipIntegrated), "104 //depot/tool/helper.c#1 move/add ", "104 //depot/tool/util.c#2 move/delete deleted",
		"107 //depot/tool/100% @home#1.txt#3 delete deleted", "107 //depot/tool/helper.c#2 edit ", "107 //depot/tool/logo.png#2 edit binary",
	}
	if !slices.Equal(got, want) {
		t.Errorf("files:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	shelf, err := fetcher.Read(t.Context(), 110, review.ReadOptions{Shelved: true})
	if err != nil || len(shelf.Files) != 1 || shelf.Files[0].Diff != "@@ -0,0 +1,1 @@\n+int helper(int n) { return n + 2; }\n" {
		t.Errorf("shelf = %+v, %v", shelf, err)
	}
}

// simFetcher builds p4sim and serves the depot. p4 inherits no environment: the
// settings are in the file beside the executable.
// simDir is removed by TestMain.
var simDir string

// buildSim builds p4sim once.
var buildSim = sync.OnceValues(func() (path string, err error) {
	if simDir, err = os.MkdirTemp("", "p4sim"); err != nil {
		return "", err
	}
	path = filepath.Join(simDir, "p4sim")
	out, err := exec.Command("go", "build", "-o", path, "./p4sim").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build p4sim: %w\n%s", err, out)
	}
	return path, err
})

func simFetcher(t *testing.T, depot string, more ...string) *ChangeFetcher {
	t.Helper()
	dir := t.TempDir()
	p4 := filepath.Join(dir, "p4")
	built, err := buildSim()
	if err == nil {
		err = os.Link(built, p4) // its settings are beside the executable
	}
	testkit.NoError(t, err)
	depot, err = filepath.Abs(depot)
	testkit.NoError(t, err)
	settings := "P4SIM_DEPOT=" + depot + "\nP4SIM_STATE=" + filepath.Join(dir, "sim") + "\n" + strings.Join(more, "\n")
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "p4sim.conf"), []byte(settings), 0o600))
	cfg := config.Default[Config]()
	cfg.Command, cfg.Port, cfg.User, cfg.StateDir = p4, "sim:1666", "criticizer", filepath.Join(dir, "state")
	cfg.Allowed, cfg.ReviewedUpTo, cfg.Selection.Include = []string{"//depot/..."}, 103, []string{"**"}
	fetcher, err := New(slog.New(slog.DiscardHandler), cfg)
	testkit.NoError(t, err)
	return fetcher
}

// checkDiff applies a file's diff to the text that it was made from. texts holds
// the newest text of each path.
func checkDiff(t *testing.T, file review.File, texts map[string]string) {
	t.Helper()
	checkWhole(t, file)
	if file.Diff == "" && file.Skipped != review.SkipIntegrated && file.Skipped != review.SkipUnchanged {
		return
	}
	before := texts[file.DepotPath]
	if file.FromPath != "" {
		before = texts[file.FromPath]
	}
	after := patch(t, before, file.Diff)
	texts[file.DepotPath] = after
	if sum := fmt.Sprintf("%X", md5.Sum([]byte(after))); sum != file.Digest && !parseType(file.Type).hasKeywords() {
		t.Errorf("%s#%d: the diff leads to a text of digest %s, want %s", file.DepotPath, file.Revision, sum, file.Digest)
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
