package p4

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// Content that was integrated without an edit is not reviewed again only if reviews have
// read what made it, or if the configuration leaves its path unreviewed.
func TestIntegratedContentNeedsAReviewOfItsSource(t *testing.T) {
	t.Parallel()
	const added, edited = "@@ -0,0 +1,1 @@\n+new\n", "@@ -1,1 +1,1 @@\n-old\n+new\n"
	branch := rev{path: "//depot/f", rev: 1, action: "branch", data: "new\n", from: "//depot/dev/f#3"}
	moved := rev{path: "//depot/f", rev: 1, action: "move/add", data: "new\n", from: "//depot/dev/f#3"}
	for name, tt := range map[string]struct {
		file         rev
		how, since   string
		firstAction  string
		reviewed     []review.Changelist
		failed       []review.Changelist // reviewed, and not read
		reviewedUpTo review.Changelist
		skip         []string
		source       string // default //depot/dev/f
		before       string // revision 2 of the source
		want         review.SkipReason
		diff         string
	}{
		"a branch of reviewed revisions":           {file: branch, reviewed: []review.Changelist{1, 2, 3}, want: review.SkipIntegrated},
		"a branch of a revision that was not":      {file: branch, reviewed: []review.Changelist{1, 2}, diff: added},
		"a revision before was not":                {file: branch, reviewed: []review.Changelist{2, 3}, diff: added},
		"no review at all":                         {file: branch, diff: added},
		"older than the installation":              {file: branch, reviewedUpTo: 3, want: review.SkipIntegrated},
		"reviewed since the installation":          {file: branch, reviewedUpTo: 1, reviewed: []review.Changelist{2, 3}, want: review.SkipIntegrated},
		"moved from elsewhere, which nobody read":  {file: branch, firstAction: "move/add", reviewed: []review.Changelist{1, 2, 3}, diff: added},
		"a merge of reviewed revisions":            {how: "copy from", since: "#2", reviewed: []review.Changelist{3}, before: "old\n", want: review.SkipIntegrated},
		"a merge that brings an earlier revision":  {how: "copy from", since: "#2", reviewed: []review.Changelist{3}, before: "new\n", diff: edited},
		"an earlier revision that is gone":         {how: "copy from", since: "#2", reviewed: []review.Changelist{3}, diff: edited},
		"earlier revisions that were reviewed":     {how: "copy from", since: "#2", reviewed: []review.Changelist{1, 2, 3}, before: "new\n", want: review.SkipIntegrated},
		"a merge of a revision that was not":       {how: "copy from", since: "#1", reviewed: []review.Changelist{3}, diff: edited},
		"a merge of the whole source":              {how: "copy from", since: "#none", reviewed: []review.Changelist{2, 3}, diff: edited},
		"a source whose changes are skipped":       {how: "copy from", since: "#none", skip: []string{"//depot/dev/..."}, diff: edited},
		"a source that the selection excludes":     {how: "copy from", since: "#none", source: "//depot/vendor/f", diff: edited},
		"a branch of a path whose changes are not": {file: branch, skip: []string{"//depot/dev/..."}, diff: added},
		"a move of a revision that was not read":   {file: moved, reviewed: []review.Changelist{1, 2}, failed: []review.Changelist{3}, diff: added},
		"a move of what predates the reviews":      {file: moved, want: review.SkipUnchanged},
		"a move from a path whose changes are not": {file: moved, reviewed: []review.Changelist{1, 2, 3}, skip: []string{"//depot/dev/..."}, diff: added},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			source := "//depot/dev/f"
			if tt.source != "" {
				source = tt.source
			}
			if tt.file.path == "" {
				tt.file = rev{path: "//depot/f", rev: 5, action: "integrate", data: "new\n"}
				f.has(rev{path: "//depot/f", rev: 4, data: "old\n"})
				f.reply("filelog -m 1 //depot/f#5", stat("depotFile", "//depot/f", "rev0", "5", "how0,0", tt.how, "file0,0", source, "srev0,0", tt.since, "erev0,0", "#3"))
			}
			f.submitted(12, tt.file)
			f.has(rev{path: source, rev: 3, data: "new\n"})
			if tt.before != "" {
				f.has(rev{path: source, rev: 2, data: tt.before})
			}
			var fields []string
			for i, n := range []string{"3", "2", "1"} {
				action := "edit"
				if n == "1" && tt.firstAction != "" {
					action = tt.firstAction
				}
				fields = append(fields, "rev"+strconv.Itoa(i), n, "change"+strconv.Itoa(i), n, "action"+strconv.Itoa(i), action)
			}
			f.reply("filelog -m 200 "+source+"#3", stat(append([]string{"depotFile", source}, fields...)...))
			change, err := f.fetch(12, func(c *Config) {
				c.ReviewedUpTo, c.Skip.Paths, c.Selection = tt.reviewedUpTo, tt.skip, selection.Config{}
				c.Reviewed = func(_ context.Context, asked []review.Changelist) (map[review.Changelist]review.Credit, error) {
					found := map[review.Changelist]review.Credit{}
					for _, cl := range asked {
						if read := slices.Contains(tt.reviewed, cl); read || slices.Contains(tt.failed, cl) {
							found[cl] = review.Credit{Read: read}
						}
					}
					return found, nil
				}
			})
			testkit.NoError(t, err)
			if got := change.Files[0]; got.Skipped != tt.want || got.Diff != tt.diff {
				t.Errorf("skipped = %q, diff = %q; want %q, %q", got.Skipped, got.Diff, tt.want, tt.diff)
			}
		})
	}
}

// The histories of many sources can exceed the output of a command. Then the content counts as
// not reviewed, and the review of the change continues.
func TestSourcesWithTooMuchHistory(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/f", rev: 1, action: "branch", data: "new\n", from: "//depot/dev/f#3"})
	f.has(rev{path: "//depot/dev/f", rev: 3, data: "new\n"})
	f.reply("filelog -m 200 //depot/dev/f#3", stat("depotFile", "//depot/dev/f", "rev0", "3", "change0", "3", "desc0", strings.Repeat("x", 100_000)))
	change, err := f.fetch(12, func(c *Config) { c.ReviewedUpTo, c.limits.outputBytes = 3, 50_000 })
	testkit.NoError(t, err)
	if got := change.Files[0]; got.Skipped != "" || got.Diff == "" {
		t.Errorf("skipped = %q, want it reviewed as new", got.Skipped)
	}
}

// p4 describe and p4 filelog may name the same revision: only the latter knows since when.
func TestSourceNamedTwice(t *testing.T) {
	t.Parallel()
	f := &file{File: review.File{Action: review.ActionIntegrate, Revision: 5}}
	f.addSource("//depot/dev/f", "//depot/dev/f", "#3", "")
	f.addSource("//depot/dev/f", "//depot/dev/f", "#3", "#2")
	if want := []source{{"//depot/dev/f", 3, 2}}; !slices.Equal(f.merged, want) {
		t.Errorf("merged %v, want %v", f.merged, want)
	}
}
