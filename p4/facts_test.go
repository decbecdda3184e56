package p4

import (
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review/pack"
)

// A fact beside the new contents may be missing: the review has the contents, and says
// what is missing. The first message is from a report of a real server; the catalogue of 2023.2 and
// an invented one stand for the others.
func TestExtrasAreNotPreconditions(t *testing.T) {
	t.Parallel()
	edit := rev{path: "//depot/f.c", rev: 2, data: "new\n"}
	moved := rev{path: "//depot/f.c", rev: 1, action: "move/add", data: "new\n", from: "//depot/was.c#7"}
	branch := rev{path: "//depot/f.c", rev: 1, action: "branch", data: "new\n"}
	integrated := rev{path: "//depot/f.c", rev: 2, action: "integrate", data: "new\n"}
	const sources = "the sources of moved, branched and merged files, which are shown as new"
	const missing = "shown as new, because its earlier content is missing: "
	for fact, is := range map[string]struct {
		key               string // the command that gets the message
		file              rev
		severity, generic int
		message, absence  string
	}{
		"the sources in describe":                    {"describe 12", edit, 4, 33, "Can't find //depot/was.c's successor rev!", sources},
		"the sources in filelog":                     {"filelog -m 1 //depot/f.c#1", branch, 3, 35, "Request too large (over 1000); see 'p4 help maxresults'.", sources},
		"the revisions that were merged":             {"filelog -m 1 //depot/f.c#2", integrated, 3, 35, "Too many rows scanned (over 1000); see 'p4 help maxscanrows'.", sources},
		"the history of a source":                    {"filelog -m 200 //depot/main/f.c#3", rev{path: "//depot/f.c", rev: 1, action: "branch", data: "new\n", from: "//depot/main/f.c#3"}, 3, 6, "You don't have permission for this operation.", sources},
		"the source, obliterated":                    {"print //depot/was.c#7", moved, 2, 17, "//depot/was.c#7 - no such file(s).", missing + "content is no longer on the server"},
		"the source, protected":                      {"print //depot/was.c#7", moved, 2, 17, "//depot/was.c#7 - no permission for operation on file(s).", missing + "no permission to read"},
		"the revision before, obliterated":           {"print //depot/f.c#1", edit, 2, 17, "//depot/f.c#1 - no file(s) at that revision.", missing + "content is no longer on the server"},
		"the revision before, purged (+Sn)":          {"print //depot/f.c#1", edit, 3, 17, "Old revision 1.1 of tempobj //depot/f.c purged; try using head revision.", missing + "content is no longer on the server"},
		"the revision before, for an unknown reason": {"print //depot/f.c#1", edit, 3, 2, "The content is in a vault.", missing + "content could not be read"},
		"the revision before, damaged":               {"print //depot/f.c#1", edit, 3, 33, "Librarian checkout depot/f.c failed.", missing + "damaged on the server"},
		"the revision before, over a limit":          {"print //depot/f.c#1", edit, 3, 35, "Operation took too long (over 30 seconds); see 'p4 help maxlocktime'.", missing + "over the limits on one change"},
		"the revision before, not convertible":       {"print //depot/f.c#1", edit, 2, 4, "Translation of file content failed near line 1 file //depot/f.c", missing + "not decodable as text"},
		"the author's address":                       {"users ann", edit, 3, 6, "You don't have permission for this operation.", "the author's address"},
		"subscribers":                                {"reviews -c 12", edit, 3, 35, "Operation took too long (over 30 seconds); see 'p4 help maxlocktime'.", "who follows the files"},
		"texts of jobs":                              {"jobs -l -e Job=BUG-7", edit, 3, 6, "You don't have permission for this operation.", "the texts of the jobs"},
		"rules of teams":                             {"print //depot/rules.md@11", edit, 3, 33, "Librarian checkout depot/rules.md failed.", "the rules of the teams"},
		"rules of teams, protected":                  {"print //depot/rules.md@11", edit, 2, 17, "//depot/rules.md@11 - protected namespace - access denied.", "the rules of the teams"},
		"the code around the change":                 {"files -e", edit, 3, 35, "Too many rows scanned (over 1000); see 'p4 help maxscanrows'.", "the code around the change"},
	} {
		t.Run(fact, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.describes(12, []string{"job0", "BUG-7"}, is.file)
			f.replies["describe -s 12"] = f.replies["describe 12"]
			f.has(rev{path: "//depot/f.c", rev: 1, data: "old\n"}, rev{path: "//depot/was.c", rev: 7, data: "old\n"}, rev{path: "//depot/main/f.c", rev: 3, data: "new\n"})
			f.reply("jobs -l -e Job=BUG-7", stat("Job", "BUG-7", "Description", "It is broken."))
			f.reply("files -e")
			f.has(is.file)
			f.reply(is.key, message(is.severity, is.generic, is.message+"\n"))
			change, err := f.fetch(12, func(c *Config) {
				c.Rules, c.Context = []string{"//depot/rules.md"}, pack.Bounds
			})
			testkit.NoError(t, err)
			file := change.Files[0]
			said := append(strs(change.Gaps), strs(file.Notes)...)
			if file.Diff == "" || file.Skipped != "" || !slices.Contains(said, is.absence) {
				t.Errorf("diff %q, skipped %q, said %q; want a diff and %q", file.Diff, file.Skipped, said, is.absence)
			}
		})
	}
}
