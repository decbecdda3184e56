package p4

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// A server that ignores case serves a path in any case, and the search for changes
// finds it.
func TestInsensitiveServer(t *testing.T) {
	t.Parallel()
	fetcher := simFetcher(t, "testdata/history.txtar", "P4SIM_CASE=insensitive")
	s, err := fetcher.connect(t.Context())
	testkit.NoError(t, err)
	list, err := s.submitted(t.Context(), []string{"//DEPOT/Tool/..."}, 101, 107)
	if err != nil || len(list) == 0 {
		t.Errorf("changes: %v, %v", list, err)
	}
	x := fetch{ChangeFetcher: fetcher, server: s}
	p, err := x.print(t.Context(), []string{"//Depot/TOOL/main.c#1"}, 0)
	if err != nil || !p.of("//depot/tool/MAIN.c#1").complete {
		t.Errorf("print: %+v, %v", p, err)
	}
}

// A connection that ends within the content of a file is a failure to retry, and the
// next attempt reads all of it.
func TestConnectionEndsWithinAnAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "one\ntwo\n"})
	r := f.replies["print //depot/a.c#1"]
	r.First = slices.Concat(stat("depotFile", "//depot/a.c", "rev", "1", "action", "add", "type", "text", "fileSize", "8"),
		chunk("one\n"), message(3, 38, "Partner exited unexpectedly.\n"))
	f.replies["print //depot/a.c#1"] = r
	fetcher := f.fetcher()
	if change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{}); failure.ClassOf(err) != failure.NetworkUnreachable {
		t.Errorf("an answer that was cut off: %d files, %v", len(change.Files), err)
	}
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
	if err != nil || change.Files[0].Diff != "@@ -0,0 +1,2 @@\n+one\n+two\n" {
		t.Errorf("the next attempt: %+v, %v", change, err)
	}
}

// The scripted server answers as p4sim does, which behaves as recorded servers: the same
// change is fetched from both.
func TestScriptIsAsTheSimulator(t *testing.T) {
	t.Parallel()
	depot := filepath.Join(t.TempDir(), "depot.txtar")
	if err := os.WriteFile(depot, []byte(`-- user ann ann@example.com Ann --
-- change 11 user=ann --
Begin.
-- add text //depot/a.c --
one
two
-- add text+x //depot/gone.sh --
echo
-- change 12 user=ann --
Mend it.
-- edit text //depot/a.c --
one
three
-- add text //depot/b.c --
new
-- delete text+x //depot/gone.sh --
`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	f.has(rev{path: "//depot/a.c", rev: 1, action: "add", data: "one\ntwo\n"}, rev{path: "//depot/gone.sh", rev: 1, action: "add", typ: "text+x", data: "echo\n"})
	f.submitted(12, rev{path: "//depot/a.c", rev: 2, data: "one\nthree\n"}, rev{path: "//depot/b.c", rev: 1, action: "add", data: "new\n"},
		rev{path: "//depot/gone.sh", rev: 2, action: "delete", typ: "text+x"})
	scripted, err := f.fetch(12)
	testkit.NoError(t, err)
	simulated, err := simFetcher(t, depot).Read(t.Context(), 12, review.ReadOptions{})
	testkit.NoError(t, err)
	for _, c := range []*review.Change{&scripted, &simulated} {
		c.Time = time.Time{}
	}
	if len(scripted.Files) != 3 || !reflect.DeepEqual(scripted, simulated) {
		t.Errorf("from the script\n%+v, from p4sim\n%+v", scripted, simulated)
	}
}
