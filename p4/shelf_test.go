package p4

import (
	"crypto/md5"
	"encoding/hex"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// shelves scripts the shelf of a changelist of ann. As in p4, the number of a
// revision is the one that it is based on.
func (f *fake) shelves(number review.Changelist, revs ...rev) {
	f.describes(number, []string{"status", "pending", "path", ""}, revs...)
	f.replies["describe -S "+number.String()] = f.replies["describe "+number.String()]
	delete(f.replies, "describe "+number.String())
	delete(f.replies, "reviews -c "+number.String())
	for _, r := range revs {
		f.has(r)
		f.replies["print "+r.path+"@="+number.String()] = f.replies["print "+r.spec()]
		delete(f.replies, "print "+r.spec())
	}
}

func (f *fake) fetchShelf(number review.Changelist, adjust ...func(*Config)) (review.Change, error) {
	f.t.Helper()
	return f.fetcher(adjust...).Read(f.t.Context(), number, review.ReadOptions{Shelved: true})
}

func TestFetchShelf(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.shelves(12, rev{path: "//depot/f", rev: 3, data: "new\n"}, rev{path: "//depot/%40g", rev: 1, action: "add", data: "g\n"},
		rev{path: "//depot/gone", rev: 2, action: "delete"})
	f.has(rev{path: "//depot/f", rev: 3, data: "old\n"})
	change, err := f.fetchShelf(12)
	testkit.NoError(t, err)
	if !change.Shelved || change.SkippedBy != "" || len(change.Files) != 3 {
		t.Fatalf("change = %+v", change)
	}
	for i, want := range []string{"@@ -1,1 +1,1 @@\n-old\n+new\n", "@@ -0,0 +1,1 @@\n+g\n", ""} {
		if got := change.Files[i].Diff; got != want {
			t.Errorf("diff of %s is %q, want %q", change.Files[i].DepotPath, got, want)
		}
	}
	if len(change.Recipients) != 1 || change.Recipients[0].Role != review.RoleAuthor {
		t.Errorf("the recipients of a shelf are %+v", change.Recipients)
	}
}

// The allow list applies to shelves.
func TestFetchShelfDenied(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.shelves(12, rev{path: "//secret/f", rev: 1, action: "add", data: "new\n"})
	change, err := f.fetchShelf(12)
	if err != nil || !change.Denied() || change.Description != "" {
		t.Errorf("change = %+v, %v", change, err)
	}
	if len(f.ran("print")) > 0 {
		t.Error("content was read")
	}
}

// A shelf that was submitted or deleted before it is read is not a failure.
func TestFetchShelfThatIsGone(t *testing.T) {
	t.Parallel()
	emptied, unknown := newFake(t), newFake(t)
	emptied.shelves(12)
	unknown.reply("describe -S 12", message(3, 2, "Change 12 unknown.\n"))
	unknown.reply("changes -m 1", stat("change", "15"))
	for name, f := range map[string]*fake{"no files": emptied, "no changelist": unknown} {
		f.is("standard")
		change, err := f.fetchShelf(12)
		if err != nil || change.SkippedBy != review.SkipRuleGone {
			t.Errorf("%s: %+v, %v", name, change, err)
		}
	}
	behind := newFake(t)
	behind.reply("describe -S 12", message(3, 2, "Change 12 unknown.\n"))
	behind.reply("changes -m 1", stat("change", "11"))
	if _, err := behind.fetchShelf(12); failure.ClassOf(err) != failure.ReplicaBehind {
		t.Errorf("a server that lags: %v", err)
	}
}

// collision returns the two contents of one MD5 that Wang and Yu published in 2004.
func collision(t *testing.T) (one, other string) {
	t.Helper()
	data, err := hex.DecodeString("d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b30283e488832571415a" +
		"085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0" +
		"e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70")
	testkit.NoError(t, err)
	one = string(data)
	for _, i := range []int{19, 45, 59, 83, 109, 123} {
		data[i] ^= 0x80
	}
	if other = string(data); one == other || md5.Sum([]byte(one)) != md5.Sum(data) {
		t.Fatal("the contents are not a collision")
	}
	return one, other
}

func TestContentDigest(t *testing.T) {
	t.Parallel()
	edited := rev{path: "//depot/f", rev: 3, data: "new\n"}
	submitted := edited
	submitted.rev = 4
	added := rev{path: "//depot/g", rev: 1, action: "add", data: "g\n"}
	digest := func(shelf bool, revs ...rev) string {
		f := newFake(t)
		f.has(rev{path: "//depot/f", rev: 3, data: "old\n"}, rev{path: "//depot/f", rev: 4, data: "old\n"})
		fetch := f.fetch
		if shelf {
			f.shelves(12, revs...)
			fetch = f.fetchShelf
		} else {
			f.submitted(12, revs...)
		}
		change, err := fetch(12)
		testkit.NoError(t, err)
		return change.ContentDigest()
	}
	shelf := digest(true, edited, added)
	if got := digest(false, added, submitted); shelf == "" || got != shelf {
		t.Errorf("submitted as it was shelved: %q and %q", shelf, got)
	}
	harmless, harmful := edited, submitted
	harmless.data, harmful.data = collision(t)
	if digest(true, harmless) == digest(false, harmful) {
		t.Error("other content with the same MD5 has the same digest")
	}
	other, executable, onto := submitted, submitted, submitted
	other.data, executable.typ, onto.rev = "newer\n", "text+x", 5
	for name, revs := range map[string][]rev{
		"other content": {other, added}, "another type": {executable, added}, "one file more": {submitted, added, {path: "//depot/h", rev: 1, action: "add"}},
		"one file less": {submitted}, "based on another revision": {onto, added},
	} {
		if digest(false, revs...) == shelf {
			t.Errorf("%s has the same digest", name)
		}
	}
	if (review.Change{}).ContentDigest() != "" || (review.Change{Files: []review.File{{DepotPath: "//depot/f", Action: review.ActionAdd}}}).ContentDigest() != "" {
		t.Error("a change without content has a digest")
	}
}
