package eval

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// symlinkMode is git's, not Go's.
const symlinkMode = 0o120000

// depot is where the files of all cases are.
const depot = "//depot/"

// A file is one file of a case's diff.
type file struct {
	review.File
	path string // as cases name it
	// before and after are the file's head on either side, as far as the diff
	// shows it.
	before, after string
	hunks         []*gitdiff.TextFragment
}

// parseDiff reads what git diff writes.
func parseDiff(diff string) ([]file, error) {
	parsed, before, err := gitdiff.Parse(strings.NewReader(diff))
	switch {
	case err != nil:
		return nil, fmt.Errorf("is not what git diff writes: %w", err)
	case strings.TrimSpace(before) != "":
		return nil, fmt.Errorf("line 1 begins no file: write what git diff writes, and nothing before it")
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
	default:
		f.readHunks()
	}
	return f
}

func (f *file) readHunks() {
	var diff strings.Builder
	for i, h := range f.hunks {
		diff.WriteString(h.String())
		if i == 0 && h.OldPosition <= 1 {
			f.before, f.after = sides(h)
		}
	}
	f.Diff = diff.String()
}

// sides are the texts of a hunk before and after the change.
func sides(h *gitdiff.TextFragment) (before, after string) {
	var b, a strings.Builder
	for _, l := range h.Lines {
		if l.Old() {
			b.WriteString(l.Line)
		}
		if l.New() {
			a.WriteString(l.Line)
		}
	}
	return b.String(), a.String()
}

// shows reports whether the diff shows a line of the new content between the
// two.
func (f *file) shows(start, end int) bool {
	for _, h := range f.hunks {
		if first, last := int(h.NewPosition), int(h.NewPosition+h.NewLines-1); start <= last && first <= end {
			return true
		}
	}
	return false
}

// change is the case as a changelist that passed the gates of policy.
func (c *Case) change(policy *selection.Policy) review.Change {
	change := review.Change{Number: 1, User: "author", Client: "eval", Description: c.Description}
	for _, f := range c.files {
		f.Skipped = cmp.Or(f.Skipped, policy.ByPath(f.DepotPath).Reason, policy.ByContent(f.DepotPath, f.before, f.after))
		if f.Skipped != "" {
			f.Diff = ""
		}
		change.Files = append(change.Files, f.File)
	}
	return change
}
