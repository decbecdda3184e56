package main

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
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

// gitChange reads the commits as one changelist, with its context. Its paths are below
// depot //git.
func gitChange(ctx context.Context, cfg *settings.Config, commits string) (change review.Change, err error) {
	policy, err := selection.New(cfg.Selection)
	if err != nil {
		return change, err
	}
	err = onRange(commits, func(repository *git.Repository, from, to string) error {
		about, err := repository.Output(ctx, "log", "-1", "--format=%an%x00%ct%x00%B", "--end-of-options", to)
		if err != nil {
			return err
		}
		parts := strings.SplitN(about, "\x00", 3)
		if len(parts) == 3 {
			seconds, _ := time.ParseDuration(parts[1] + "s")
			change.User, change.Time, change.Description = parts[0], time.Unix(0, 0).Add(seconds), parts[2]
		}
		files, err := readRange(ctx, repository, from, to, cfg.P4.CharsetFallback)
		if err != nil {
			return err
		}
		for _, f := range files {
			file := review.File{DepotPath: gitDepot + f.path, Action: f.action, Type: "text"}
			byPath := policy.ByPath(file.DepotPath).Reason
			switch {
			case f.action == review.ActionDelete:
				file.Skipped = review.SkipDeleted
			case byPath != "" || f.skipped != "":
				file.Skipped = cmp.Or(byPath, f.skipped)
			case len(f.before)+len(f.after) > review.MaxWhole:
				file.Skipped = review.SkipTooLarge
			default:
				file.Diff, file.Whole = p4.Diff(f.path, f.before, f.after, contextLines), review.Compress(f.after)
				file.Charset, file.Notes = f.charset, f.notes
			}
			change.Files = append(change.Files, file)
		}
		change.Context, err = gitContext(ctx, repository, to, policy, change.Files)
		return err
	})
	return change, err
}

const gitDepot = "//git/"

// gitContext returns the code around the change, as a review of a changelist has it.
func gitContext(ctx context.Context, repository *git.Repository, commit string, policy *selection.Policy, files []review.File) (review.Context, error) {
	p := pack.New(ctx, pack.Bounds, files)
	tree, err := repository.Output(ctx, "ls-tree", "-r", "-z", "--end-of-options", commit)
	if err != nil {
		return p.Context(), fmt.Errorf("list the files of %s: %w", commit, err)
	}
	wanted, blobs := map[pack.Lookup]bool{}, map[string]string{}
	for _, c := range p.Candidates() {
		wanted[c] = true
	}
	for entry := range strings.SplitSeq(tree, "\x00") { // "MODE blob ID", a tab and the path
		about, name, _ := strings.Cut(entry, "\t")
		file, isBlob := gitDepot+name, strings.Contains(about, " blob ")
		if isBlob && (wanted[pack.Lookup{Path: file}] || wanted[pack.Folder(file)]) && policy.ByPath(file).Reason == "" {
			blobs[file] = about[strings.LastIndexByte(about, ' ')+1:]
		}
	}
	chosen, texts := p.Choose(slices.Collect(maps.Keys(blobs))), map[string]string{}
	for _, file := range chosen {
		content, err := repository.Blob(blobs[file]) //nolint:contextcheck // as in readRange
		if err != nil {
			return p.Context(), fmt.Errorf("read %s: %w", file, err)
		}
		if text, isText, _ := p4.Texts(nil, content, ""); isText[1] {
			texts[file] = text[1]
		}
	}
	p.Add(ctx, chosen, texts)
	return p.Context(), nil
}

// changedFiles reads the text files that differ between two commits of the git repository
// in the working directory.
func changedFiles(ctx context.Context, commits string) (files []editedFile, err error) {
	err = onRange(commits, func(repository *git.Repository, from, to string) error {
		files, err = readRange(ctx, repository, from, to, "")
		return err
	})
	return slices.DeleteFunc(files, func(f editedFile) bool { return f.skipped != "" }), err
}

// onRange opens the git repository in the working directory for two commits, such as
// main..HEAD.
func onRange(commits string, use func(repository *git.Repository, from, to string) error) error {
	from, to, ok := strings.Cut(commits, "..")
	if !ok || from == "" || to == "" {
		return badUsage("--git wants two commits, such as main..HEAD")
	}
	repository, err := git.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(use(repository, from, to), repository.Close())
}

// readRange reads the files that differ between two commits. Like a text file of Perforce,
// a file is decoded with the charset, or with a guessed one.
func readRange(ctx context.Context, repository *git.Repository, from, to, charset string) (files []editedFile, err error) {
	raw, err := repository.Output(ctx, "diff", "--raw", "--no-abbrev", "--no-renames", "-z", "--end-of-options", from, to)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s..%s: %w: run it in a git repository that has both commits", from, to, err)
	}
	fields := strings.Split(raw, "\x00")
	for i := 0; i+1 < len(fields); i += 2 { // ":MODE MODE BLOB BLOB STATUS", then the path
		words := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		f := editedFile{path: fields[i+1], action: review.ActionEdit}
		switch words[4] {
		case "A":
			f.action = review.ActionAdd
		case "D":
			f.action = review.ActionDelete
		}
		var contents [2][]byte
		for n := range contents {
			if id := words[2+n]; strings.Trim(id, "0") != "" && words[n] != submodule {
				if contents[n], err = repository.Blob(id); err != nil { //nolint:contextcheck // one process serves all blobs; Close ends it
					return nil, fmt.Errorf("read %s: %w", f.path, err)
				}
			}
		}
		texts, isText, guess := p4.Texts(contents[0], contents[1], charset)
		f.before, f.after, f.charset = texts[0], texts[1], guess
		if !isText[0] {
			f.before, f.notes = "", []review.Note{review.NoteNoBase(review.SkipNotDecodable)}
		}
		switch {
		case words[1] == submodule:
			f.skipped = review.SkipUnknownType
		case !isText[1] && selection.IsBinary(f.path):
			f.skipped = review.SkipBinary
		case !isText[1]:
			f.skipped = review.SkipNotDecodable
		case bytes.Equal(contents[0], contents[1]) && words[1] == executable && words[0] != executable:
			f.skipped = review.SkipExecutable
		case bytes.Equal(contents[0], contents[1]):
			f.skipped = review.SkipUnchanged
		}
		files = append(files, f)
	}
	return files, nil
}

// Modes of files in git.
const (
	submodule  = "160000"
	executable = "100755"
)
