package p4

import (
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
)

// factRow is a row of the table of optional facts in docs/perforce.md.
type factRow struct {
	fact, message, absence string
	severity, generic      int
}

func factRows(t *testing.T) (rows []factRow) {
	t.Helper()
	page, err := os.ReadFile("../docs/perforce.md")
	testkit.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| fact | message | if it is missing |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/perforce.md has no table of facts")
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 {
			break
		}
		codes, text, _ := strings.Cut(strings.Trim(cells[1], "`"), " ")
		severity, generic, _ := strings.Cut(codes, "/")
		row := factRow{fact: cells[0], message: text, absence: strings.Split(cells[2], "`")[1]}
		row.severity, err = strconv.Atoi(severity)
		testkit.NoError(t, err)
		row.generic, err = strconv.Atoi(generic)
		testkit.NoError(t, err)
		rows = append(rows, row)
	}
	return rows
}

// A fact beside the new contents may be missing: the review has the contents, and says
// what is missing. docs/perforce.md lists the facts and the messages.
func TestExtrasAreNotPreconditions(t *testing.T) {
	t.Parallel()
	edit := rev{path: "//depot/f.c", rev: 2, data: "new\n"}
	moved := rev{path: "//depot/f.c", rev: 1, action: "move/add", data: "new\n", from: "//depot/was.c#7"}
	branch := rev{path: "//depot/f.c", rev: 1, action: "branch", data: "new\n"}
	integrated := rev{path: "//depot/f.c", rev: 2, action: "integrate", data: "new\n"}
	for fact, is := range map[string]struct {
		key  string // the command that gets the message
		file rev
	}{
		"the sources in `describe`":                  {"describe 12", edit},
		"the sources in `filelog`":                   {"filelog -m 1 //depot/f.c#1", branch},
		"the revisions that were merged":             {"filelog -m 1 //depot/f.c#2", integrated},
		"the history of a source":                    {"filelog -m 200 //depot/main/f.c#3", rev{path: "//depot/f.c", rev: 1, action: "branch", data: "new\n", from: "//depot/main/f.c#3"}},
		"the source, obliterated":                    {"print //depot/was.c#7", moved},
		"the source, protected":                      {"print //depot/was.c#7", moved},
		"the revision before, obliterated":           {"print //depot/f.c#1", edit},
		"the revision before, purged (`+Sn`)":        {"print //depot/f.c#1", edit},
		"the revision before, for an unknown reason": {"print //depot/f.c#1", edit},
		"the revision before, damaged":               {"print //depot/f.c#1", edit},
		"the revision before, over a limit":          {"print //depot/f.c#1", edit},
		"the revision before, not convertible":       {"print //depot/f.c#1", edit},
		"the author's address":                       {"users ann", edit},
		"subscribers":                                {"reviews -c 12", edit},
		"texts of jobs":                              {"jobs -l -e Job=BUG-7", edit},
		"rules of teams":                             {"print //depot/rules.md@11", edit},
		"the code around the change":                 {"files -e", edit},
	} {
		t.Run(fact, func(t *testing.T) {
			t.Parallel()
			rows := slices.DeleteFunc(factRows(t), func(r factRow) bool { return r.fact != fact })
			if len(rows) != 1 {
				t.Fatalf("docs/perforce.md has %d rows of this fact, want 1", len(rows))
			}
			row := rows[0]
			f := newFake(t)
			f.describes(12, []string{"job0", "BUG-7"}, is.file)
			f.replies["describe -s 12"] = f.replies["describe 12"]
			f.has(rev{path: "//depot/f.c", rev: 1, data: "old\n"}, rev{path: "//depot/was.c", rev: 7, data: "old\n"}, rev{path: "//depot/main/f.c", rev: 3, data: "new\n"})
			f.reply("jobs -l -e Job=BUG-7", stat("Job", "BUG-7", "Description", "It is broken."))
			f.reply("files -e")
			f.has(is.file)
			f.reply(is.key, message(row.severity, row.generic, row.message+"\n"))
			change, err := f.fetcher(slog.New(slog.DiscardHandler), func(c *Config) {
				c.Rules, c.Context = []string{"//depot/rules.md"}, pack.Bounds
			}).Read(t.Context(), 12, review.ReadOptions{})
			testkit.NoError(t, err)
			file := change.Files[0]
			said := append(strs(change.Gaps), strs(file.Notes)...)
			if file.Diff == "" || file.Skipped != "" || !slices.Contains(said, row.absence) {
				t.Errorf("diff %q, skipped %q, said %q; want a diff and %q", file.Diff, file.Skipped, said, row.absence)
			}
		})
	}
	if rows := factRows(t); len(rows) != 17 {
		t.Errorf("docs/perforce.md has %d facts, and the test 17", len(rows))
	}
}
