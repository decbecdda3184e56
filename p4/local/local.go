// Package local makes changelists of edits that Perforce does not have: of two commits of
// a git repository, or of two sets of texts. They take the way of a changelist that is
// fetched: the same decoding, diff, selection and context.
package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

// An Edit is both texts of a file; one of them may be empty.
type Edit struct {
	Path, Before, After string
	Action              review.Action
	// As in [review.File]:
	Charset string
	Notes   []review.Note
	Skipped review.SkipReason
}

// contextLines is the default of p4.context_lines.
const contextLines = 10

// File returns the edit as a file of a changelist. Its path is below root.
func (e Edit) File(root string) review.File {
	f := review.File{DepotPath: root + e.Path, Action: e.Action, Type: "text", Skipped: e.Skipped}
	switch {
	case e.Action == review.ActionDelete:
		f.Skipped = review.SkipDeleted
	case f.Skipped == "" && len(e.Before)+len(e.After) > review.MaxWhole:
		f.Skipped = review.SkipTooLarge
	case f.Skipped == "":
		f.Diff, f.Whole = p4.Diff(e.Before, e.After, contextLines), review.Compress(e.After)
		f.Charset, f.Notes = e.Charset, e.Notes
	}
	return f
}

// A Tree is where files outside of the change are read: a commit of a repository. Charset is
// as in [Commits].
type Tree struct {
	Repository      *git.Repository
	Commit, Charset string
}

// Change returns a changelist of edits with its context, from the changed files and from
// the tree, if there is one. Files that the policy leaves out have no text.
func Change(ctx context.Context, root string, edits []Edit, policy *selection.Policy, tree *Tree) (change review.Change, err error) {
	for _, e := range edits {
		if e.Action != review.ActionDelete {
			e.Skipped = cmp.Or(policy.ByPath(root+e.Path).Reason, e.Skipped)
		}
		change.Files = append(change.Files, e.File(root))
	}
	p := pack.New(ctx, pack.Bounds, change.Files)
	if tree != nil {
		err = tree.addTo(ctx, p, root, policy)
	}
	change.Context = p.Context()
	return change, err
}

// addTo adds files of the tree to p, as a review adds files of Perforce.
func (t *Tree) addTo(ctx context.Context, p *pack.Pack, root string, policy *selection.Policy) error {
	listed, err := t.Repository.Output(ctx, "ls-tree", "-r", "-z", "--end-of-options", t.Commit)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", t.Commit, err)
	}
	wanted, blobs := map[pack.Lookup]bool{}, map[string]string{}
	for _, c := range p.Candidates() {
		wanted[c] = true
	}
	for entry := range strings.SplitSeq(listed, "\x00") { // "MODE blob ID", a tab and the path
		about, name, _ := strings.Cut(entry, "\t")
		file, isFile := root+name, strings.Contains(about, " blob ") && !strings.HasPrefix(about, symlink)
		if isFile && (wanted[pack.Lookup{Path: file}] || wanted[pack.Folder(file)]) && policy.ByPath(file).Reason == "" {
			blobs[file] = about[strings.LastIndexByte(about, ' ')+1:]
		}
	}
	chosen, texts := p.Choose(slices.Collect(maps.Keys(blobs))), map[string]string{}
	for _, file := range chosen {
		content, err := t.Repository.Blob(blobs[file], int(pack.Bounds.Bytes)) //nolint:contextcheck // as in Commits
		if errors.Is(err, git.ErrTooLarge) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if text, isText, _ := p4.Texts(nil, content, t.Charset); isText[1] {
			texts[file] = text[1]
		}
	}
	p.Add(ctx, chosen, texts)
	return nil
}

// Edits returns the edits that lead from one set of texts, by path, to another.
func Edits(before, after map[string]string) (edits []Edit) {
	all := map[string]string{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		was, existed := before[path]
		is, exists := after[path]
		switch {
		case !existed:
			edits = append(edits, Edit{Path: path, After: is, Action: review.ActionAdd})
		case !exists:
			edits = append(edits, Edit{Path: path, Before: was, Action: review.ActionDelete})
		case was != is:
			edits = append(edits, Edit{Path: path, Before: was, After: is, Action: review.ActionEdit})
		}
	}
	return edits
}

// Commits reads what leads from one commit to another, with the author, the time and the
// message of the latter. Like a text file of Perforce, a file is decoded with the charset,
// or with a guessed one.
func Commits(ctx context.Context, repository *git.Repository, from, to, charset string) (about review.Change, edits []Edit, err error) {
	head, err := repository.Output(ctx, "log", "-1", "--format=%an%x00%ct%x00%B", "--end-of-options", to)
	if err != nil {
		return about, nil, err
	}
	if parts := strings.SplitN(head, "\x00", 3); len(parts) == 3 {
		seconds, _ := time.ParseDuration(parts[1] + "s")
		about.User, about.Time, about.Description = parts[0], time.Unix(0, 0).Add(seconds), parts[2]
	}
	raw, err := repository.Output(ctx, "diff", "--raw", "--no-abbrev", "--no-renames", "-z", "--end-of-options", from, to)
	if err != nil {
		return about, nil, fmt.Errorf("list the files of %s..%s: %w: run it in a git repository that has both commits", from, to, err)
	}
	fields := strings.Split(raw, "\x00")
	for i := 0; i+1 < len(fields); i += 2 { // ":MODE MODE BLOB BLOB STATUS", then the path
		words := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		e := Edit{Path: fields[i+1], Action: review.ActionEdit}
		switch words[4] {
		case "A":
			e.Action = review.ActionAdd
		case "D":
			e.Action = review.ActionDelete
		}
		var contents [2][]byte
		for n := range contents {
			if id := words[2+n]; strings.Trim(id, "0") != "" && words[n] != submodule {
				contents[n], err = repository.Blob(id, review.MaxWhole) //nolint:contextcheck // one process serves all blobs; Close ends it
				switch {
				case errors.Is(err, git.ErrTooLarge):
					e.Skipped = review.SkipTooLarge
				case err != nil:
					return about, nil, fmt.Errorf("read %s: %w", e.Path, err)
				}
			}
		}
		texts, isText, guess := p4.Texts(contents[0], contents[1], charset)
		e.Before, e.After, e.Charset = texts[0], texts[1], guess
		if !isText[0] {
			e.Before, e.Notes = "", []review.Note{review.NoteNoBase(review.SkipNotDecodable)}
		}
		switch {
		case e.Skipped != "":
		case words[1] == submodule:
			e.Skipped = review.SkipUnknownType
		case words[1] == symlink:
			e.Skipped = review.SkipSymlink
		case !isText[1] && selection.IsBinary(e.Path):
			e.Skipped = review.SkipBinary
		case !isText[1]:
			e.Skipped = review.SkipNotDecodable
		case bytes.Equal(contents[0], contents[1]) && words[1] == executable && words[0] != executable:
			e.Skipped = review.SkipExecutable
		case bytes.Equal(contents[0], contents[1]):
			e.Skipped = review.SkipUnchanged
		}
		edits = append(edits, e)
	}
	return about, edits, nil
}

// Modes of files in git.
const (
	submodule  = "160000"
	symlink    = "120000"
	executable = "100755"
)
