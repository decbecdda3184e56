package local

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// Each file of the commits is in the change: what cannot be read as text has a reason.
func TestFilesOfCommits(t *testing.T) { // without t.Parallel: it changes the working directory
	t.Chdir(t.TempDir())
	run := func(args ...string) string {
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
			run("init", "-q")
			testkit.NoError(t, os.WriteFile("run.sh", []byte("true\n"), 0o600))
		} else {
			run("update-index", "--add", "--cacheinfo", "160000,"+run("rev-parse", "HEAD")+",module")
			testkit.NoError(t, os.Chmod("run.sh", 0o700))
			testkit.NoError(t, os.Symlink("edit.c", "link.c"))
		}
		run("add", "--ignore-removal", ".")
		run("add", "-u", ".", ":!module")
		run("commit", "-q", "-m", "Files")
	}
	cases["module"] = struct {
		before, after string
		want          review.File
	}{want: review.File{Action: add, Skipped: review.SkipUnknownType}}
	cases["link.c"] = struct {
		before, after string
		want          review.File
	}{want: review.File{Action: add, Skipped: review.SkipSymlink}}
	cases["run.sh"] = struct {
		before, after string
		want          review.File
	}{want: review.File{Action: edit, Skipped: review.SkipExecutable}}

	repository, err := git.Open(".")
	testkit.NoError(t, err)
	about, edits, err := Commits(t.Context(), repository, "HEAD~1", "HEAD", "")
	testkit.NoError(t, err)
	if about.User != "Ann" || strings.TrimSpace(about.Description) != "Files" || about.Time.IsZero() {
		t.Errorf("%q by %q at %v", about.Description, about.User, about.Time)
	}
	policy, err := selection.New(selection.Config{})
	testkit.NoError(t, err)
	change, err := Change(t.Context(), "//git/", edits, policy, &Tree{Repository: repository, Commit: "HEAD"})
	testkit.NoError(t, errors.Join(err, repository.Close()))
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

func TestEdits(t *testing.T) {
	t.Parallel()
	edits := Edits(map[string]string{"same": "x", "gone": "x", "edited": "x\n"}, map[string]string{"same": "x", "new": "y\n", "edited": "z\n"})
	var got []string
	for _, e := range edits {
		f := e.File("//depot/")
		got = append(got, f.DepotPath+" "+string(f.Action)+" "+string(f.Skipped)+" "+f.Diff)
	}
	want := []string{
		"//depot/edited edit  @@ -1,1 +1,1 @@\n-x\n+z\n",
		"//depot/gone delete deleted ",
		"//depot/new add  @@ -0,0 +1,1 @@\n+y\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
