package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// Each file of the commits is in the change: what cannot be read as text has a reason.
func TestFilesOfCommits(t *testing.T) { // without t.Parallel: it changes the working directory
	t.Chdir(t.TempDir())
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.test"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const absent = "absent"
	edit, add := review.ActionEdit, review.ActionAdd
	utf16 := func(text string) string {
		encoded := "\xff\xfe"
		for _, b := range []byte(text) {
			encoded += string([]byte{b, 0})
		}
		return encoded
	}
	noBase := review.NoteNoBase(review.SkipNotDecodable)
	cases := map[string]struct {
		before, after string
		want          review.File // without a path, a diff and a whole text
	}{
		"edit.c":       {"a\n", "b\n", review.File{Action: edit}},
		"emptied.c":    {"a\n", "", review.File{Action: edit}},
		"filled.c":     {"", "a\n", review.File{Action: edit}},
		"new.c":        {absent, "a\n", review.File{Action: add}},
		"new-empty.c":  {absent, "", review.File{Action: add, Skipped: review.SkipUnchanged}},
		"gone.c":       {"a\n", absent, review.File{Action: review.ActionDelete, Skipped: review.SkipDeleted}},
		"gone-empty.c": {"", absent, review.File{Action: review.ActionDelete, Skipped: review.SkipDeleted}},
		"nul.c":        {"a\n", "a\x00b\n", review.File{Action: edit, Skipped: review.SkipNotDecodable}},
		"was-nul.c":    {"a\x00b\n", "a\n", review.File{Action: edit, Notes: []review.Note{noBase}}},
		"unmarked.c":   {"a\n", utf16("int b = 1;\n")[2:], review.File{Action: edit, Skipped: review.SkipNotDecodable}},
		"utf16.c":      {utf16("int a = 1;\n"), utf16("int b = 1;\n"), review.File{Action: edit, Charset: "utf-16"}},
		"latin.c":      {"a\n", "// caf\xe9\n", review.File{Action: edit, Charset: "windows-1252"}},
		"picture.png":  {"a\x00\n", "b\x00\n", review.File{Action: edit, Skipped: review.SkipBinary}},
	}
	for _, isAfter := range []bool{false, true} {
		for name, c := range cases {
			text := c.before
			if isAfter {
				text = c.after
			}
			if text == absent {
				_ = os.Remove(name)
				continue
			}
			testkit.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		}
		if !isAfter {
			git("init", "-q")
			testkit.NoError(t, os.WriteFile("run.sh", []byte("true\n"), 0o600))
		} else {
			git("update-index", "--add", "--cacheinfo", "160000,"+git("rev-parse", "HEAD")+",module")
			testkit.NoError(t, os.Chmod("run.sh", 0o700))
		}
		git("add", "--ignore-removal", ".")
		git("add", "-u", ".", ":!module")
		git("commit", "-q", "-m", "Files")
	}
	cases["module"] = struct {
		before, after string
		want          review.File
	}{want: review.File{Action: add, Skipped: review.SkipUnknownType}}
	cases["run.sh"] = struct {
		before, after string
		want          review.File
	}{want: review.File{Action: edit, Skipped: review.SkipExecutable}}

	change, err := gitChange(t.Context(), &settings.Config{}, "HEAD~1..HEAD")
	testkit.NoError(t, err)
	for _, f := range change.Files {
		name := strings.TrimPrefix(f.DepotPath, "//git/")
		want, known := cases[name]
		if !known || f.Action != want.want.Action || f.Skipped != want.want.Skipped || f.Charset != want.want.Charset ||
			!slices.Equal(f.Notes, want.want.Notes) || (f.Diff == "") != (f.Skipped != "") {
			t.Errorf("%s: %s, skipped %q, charset %q, notes %q, diff %q; want %+v", name, f.Action, f.Skipped, f.Charset, f.Notes, f.Diff, want.want)
		}
		delete(cases, name)
	}
	for name := range cases {
		t.Errorf("%s is missing", name)
	}
}
