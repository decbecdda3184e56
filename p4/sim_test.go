package p4

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// In a depot with damaged revisions every change is read, and only files with a damaged
// revision are skipped, whether the server goes on after them or not.
func TestDepotWithDamage(t *testing.T) {
	t.Parallel()
	const changes, files = 3, 60
	var depot strings.Builder
	for n := range changes {
		fmt.Fprintf(&depot, "-- change %d user=ann --\nChange.\n", n+1)
		for i := range files {
			action := "edit"
			if n == 0 {
				action = "add"
			}
			fmt.Fprintf(&depot, "-- %s text //depot/f%02d.c --\nrevision %d\n", action, i, n+1)
		}
	}
	path := filepath.Join(t.TempDir(), "depot.txtar")
	if err := os.WriteFile(path, []byte(depot.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var found [2][]string
	for i, ends := range []string{"false", "true"} {
		fetcher := simFetcher(t, path, `P4SIM_FAULT={"fault":"damaged","every":20,"ends":`+ends+`}`)
		for n := range changes {
			change, err := fetcher.Fetch(t.Context(), review.Changelist(n+1))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range change.Files {
				if f.Skipped != "" {
					found[i] = append(found[i], fmt.Sprintf("%d %s %s", n+1, f.DepotPath, f.Skipped))
				} else if f.Diff == "" {
					t.Errorf("change %d: %s has no diff and no reason", n+1, f.DepotPath)
				}
			}
		}
	}
	// A damaged revision costs its own change and the next, which it is the base of.
	if len(found[0]) < changes || len(found[0]) > changes*files/4 || !slices.Equal(found[0], found[1]) || !strings.HasSuffix(found[0][0], string(review.SkipDamaged)) {
		t.Errorf("skipped if the server goes on: %q; if it ends: %q", found[0], found[1])
	}
}

// A replica before it knows a changelist, a submit or a shelf. The lag of an hour does
// not end in this test.
func TestLaggingReplica(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  string
		number review.Changelist
		how    review.Reading
	}{
		{`{"fault":"lag","for":"1h"}`, 103, review.Reading{}},
		{`{"fault":"lag","for":"1h","as":"pending"}`, 103, review.Reading{}},
		{`{"fault":"lag","for":"1h","as":"pending"}`, 110, review.Reading{Shelved: true}},
	} {
		fetcher := simFetcher(t, "testdata/history.txtar", "P4SIM_SERVICES=replica", "P4SIM_FAULT="+tt.fault)
		for range 2 {
			if _, err := fetcher.Read(t.Context(), tt.number, tt.how); failure.ClassOf(err) != failure.ReplicaBehind {
				t.Errorf("%s, change %d: %v", tt.fault, tt.number, err)
			}
		}
	}
}

// A server that ignores case serves a path in any case, and the search for changes
// finds it.
func TestInsensitiveServer(t *testing.T) {
	t.Parallel()
	fetcher := simFetcher(t, "testdata/history.txtar", "P4SIM_CASE=insensitive")
	list, err := fetcher.submitted(t.Context(), nil, []string{"//DEPOT/Tool/...@101,@107"})
	if err != nil || len(list) == 0 {
		t.Errorf("changes: %v, %v", list, err)
	}
	s, err := fetcher.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := fetch{server: s, cfg: fetcher.cfg}
	p, err := x.print(t.Context(), []string{"//Depot/TOOL/main.c#1"}, 0)
	if err != nil || !p.of("//depot/tool/MAIN.c#1").complete {
		t.Errorf("print: %+v, %v", p, err)
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
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := simFetcher(t, depot).Fetch(t.Context(), 12)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*review.Change{&scripted, &simulated} {
		c.Time, c.Client = time.Time{}, ""
	}
	if len(scripted.Files) != 3 || !reflect.DeepEqual(scripted, simulated) {
		t.Errorf("from the script\n%+v, from p4sim\n%+v", scripted, simulated)
	}
}
