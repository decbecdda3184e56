package p4

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
)

func withContext(c *Config) {
	c.Context = pack.Limits{Lines: 120, Files: 20, Bytes: 400_000, Tokens: 10_000}
	c.Allowed = []string{"//depot/m/..."}
	c.Embargoed = []string{"//depot/m/embargo/...", "//depot/m/mixed/one.h"}
}

// contextDepot has a change of some files; each of them includes denied paths, and names
// that a header defines.
func contextDepot(t *testing.T, files int) *fake {
	t.Helper()
	f := newFake(t)
	const includes = "#include \"b.h\"\n#include \"../secret/x.h\"\n#include \"embargo/x.h\"\n#include \".ssh/x.h\"\n#include \"-o.h\"\n#include \"....h\"\n"
	var revs []rev
	for i := range files {
		text := includes + "int f(void) { return 1; }\n"
		path := fmt.Sprintf("//depot/m/src/f%03d.c", i)
		f.has(rev{path: path, rev: 1, data: text})
		revs = append(revs, rev{path: path, rev: 2, data: strings.Replace(text, "1", "HELPED", 1)})
	}
	revs = append(revs, rev{path: "//depot/m/mixed/z.c", rev: 1, action: "add", data: "int z;\n"})
	f.submitted(7, revs...)
	f.has(rev{path: "//depot/m/src/b.h", rev: 4, data: "#define HELPED 2\n#define OTHER 3\n"})
	f.has(rev{path: "//depot/m/src/wide.h", rev: 1, typ: "binary", data: "x"})
	f.reply("print //depot/m/src/cut.h#1", stat("depotFile", "//depot/m/src/cut.h", "rev", "1", "type", "text", "fileSize", "90"), chunk("#define HELPED 1\n"), chunk(""))
	listed := func(path, rev, typ string) []byte { return stat("depotFile", path, "rev", rev, "type", typ) }
	f.reply("files -e", message(2, 17, "//depot/m/src/gone.h@7 - no such file(s).\n"), listed("//depot/m/src/b.h", "4", "text"), listed("//depot/m/src/cut.h", "1", "text"),
		listed("//depot/m/src/wide.h", "1", "binary"), listed("//depot/m/embargo/x.h", "1", "text"), listed("//depot/secret/x.h", "1", "text"), listed("//depot/m/src/.env", "1", "text"))
	return f
}

// The context costs two processes, for one file as for many, and no denied path is on
// their command lines.
func TestContext(t *testing.T) {
	t.Parallel()
	for _, files := range []int{1, 40} {
		f := contextDepot(t, files)
		change, err := f.fetch(7, withContext)
		if err != nil || len(change.Gaps) > 0 {
			t.Fatal(err, change.Gaps)
		}
		with := f.calls()
		plain := contextDepot(t, files)
		if _, err := plain.fetch(7, func(c *Config) { withContext(c); c.Context = pack.Limits{} }); err != nil {
			t.Fatal(err)
		}
		if n := len(with) - len(plain.calls()); n != 2 {
			t.Errorf("%d files: %d more processes, want 2", files, n)
		}
		list, err := NewAllowList([]string{"//depot/m/..."}, []string{"//depot/m/embargo/...", "//depot/m/mixed/one.h"})
		testkit.NoError(t, err)
		lines := 0
		for _, c := range with {
			for _, line := range c.Lines {
				path, isFolder := strings.CutSuffix(pathOf(line), "/*")
				if isFolder {
					path += "/any.h"
				}
				if err := list.Check(path, caseSensitive); err != nil || strings.Contains(line, ".ssh") || strings.HasPrefix(line, "//depot/m/mixed/*") {
					t.Errorf("%q reached p4: %v", line, err)
				}
				lines++
			}
		}
		if lines < 2*files {
			t.Errorf("%d lines for p4: nothing was tested", lines)
		}
		sources := slices.DeleteFunc(slices.Clone(change.Context.Blocks), func(b review.Block) bool { return b.Tier != review.TierSiblings })
		if len(sources) != 1 || sources[0].Path != "//depot/m/src/b.h" || !slices.Equal(sources[0].Names, []string{"HELPED"}) || len(sources[0].For) != files {
			t.Errorf("%d files: got %+v", files, sources)
		}
	}
}

// A context that cannot be read is a gap if another attempt would not help.
func TestContextFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply []byte
		how   review.ReadOptions
		gaps  []review.Gap
		class failure.Class
	}{
		"no permission":             {message(3, 1, "You don't have permission for this operation.\n"), review.ReadOptions{}, []review.Gap{review.GapContext}, ""},
		"busy":                      {message(3, 1, "Request too large for server memory (try later?).\n"), review.ReadOptions{}, nil, failure.ServerBusy},
		"busy, in the last attempt": {message(3, 1, "Request too large for server memory (try later?).\n"), review.ReadOptions{LastAttempt: true}, []review.Gap{review.GapContext}, ""},
	} {
		f := contextDepot(t, 1)
		f.reply("files -e", tt.reply)
		change, err := f.fetcher(withContext).Read(t.Context(), 7, tt.how)
		if tt.class != "" && failure.ClassOf(err) != tt.class || tt.class == "" && (err != nil || !slices.Equal(change.Gaps, tt.gaps) || change.Files[0].Diff == "") {
			t.Errorf("%s: %v, gaps %v", name, err, change.Gaps)
		}
	}
}
