package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// symlinkMode is the mode of a symbolic link in Git.
const symlinkMode = 0o120000

// depot is the depot path of the files of all cases.
const depot = "//depot/"

type file struct {
	review.File
	path          string // as cases name it
	before, after string // the beginning of either side, if the diff shows it
	hunks         []*gitdiff.TextFragment
}

func findFile(files []file, path string) *file {
	if i := slices.IndexFunc(files, func(f file) bool { return f.path == path }); i >= 0 {
		return &files[i]
	}
	return nil
}

// parseDiff parses the output of git diff.
func parseDiff(diff string) ([]file, error) {
	parsed, before, err := gitdiff.Parse(strings.NewReader(diff))
	switch {
	case err != nil:
		return nil, fmt.Errorf("is not the output of git diff: %w", err)
	case strings.TrimSpace(before) != "":
		return nil, fmt.Errorf("has text before the first file: write only the output of git diff")
	case len(parsed) == 0:
		return nil, fmt.Errorf("has no file")
	}
	files := make([]file, len(parsed))
	for i, p := range parsed {
		files[i] = newFile(p)
	}
	return files, nil
}

func newFile(p *gitdiff.File) file {
	f := file{path: cmp.Or(p.NewName, p.OldName), hunks: p.TextFragments}
	f.File = review.File{DepotPath: depot + f.path, Action: review.ActionEdit, Type: "text", Revision: 2}
	switch {
	case p.IsDelete:
		f.Action, f.Skipped = review.ActionDelete, review.SkipDeleted
	case p.IsNew:
		f.Action, f.Revision = review.ActionAdd, 1
	case p.IsRename:
		f.Action, f.FromPath = review.ActionMoveAdd, depot+p.OldName
	case p.IsCopy:
		f.Action, f.FromPath = review.ActionBranch, depot+p.OldName
	}
	switch {
	case f.Skipped != "":
	case p.IsBinary:
		f.Type, f.Skipped = "binary", review.SkipBinary
	case p.NewMode == symlinkMode:
		f.Type, f.Skipped = "symlink", review.SkipSymlink
	case len(p.TextFragments) == 0:
		f.Skipped = review.SkipUnchanged
	}
	if f.Skipped != "" {
		return f
	}
	for _, h := range f.hunks {
		f.Diff += h.String()
	}
	if first := f.hunks[0]; first.OldPosition <= 1 {
		for _, l := range first.Lines {
			if l.Old() {
				f.before += l.Line
			}
			if l.New() {
				f.after += l.Line
			}
		}
	}
	return f
}

// shows reports whether the diff shows one of the given lines of the new content.
func (f *file) shows(start, end int) bool {
	return slices.ContainsFunc(f.hunks, func(h *gitdiff.TextFragment) bool {
		return start < int(h.NewPosition+h.NewLines) && int(h.NewPosition) <= end
	})
}

// change returns the case as a changelist after the selection of files.
func (c *Case) change(policy *selection.Policy) review.Change {
	change := review.Change{Number: 1, User: "author", Client: "eval", Description: c.Description}
	for _, f := range c.files {
		f.Skipped = cmp.Or(f.Skipped, policy.ByPath(f.DepotPath).Reason)
		if f.Skipped != "" {
			f.Diff = ""
		}
		change.Files = append(change.Files, f.File)
	}
	return change
}
