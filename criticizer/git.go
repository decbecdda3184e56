package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

// gitChange reads the commits as one changelist, with the context that the changed files
// hold. Its paths are below //git.
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
		files, err := readRange(ctx, repository, from, to)
		for _, f := range files {
			file := review.File{DepotPath: "//git/" + f.path, Action: review.ActionEdit, Type: "text", Diff: p4.Diff(f.path, f.before, f.after, contextLines), Whole: review.Compress(f.after)}
			switch {
			case len(f.before)+len(f.after) > review.MaxWhole:
				file.Diff, file.Whole, file.Skipped = "", nil, review.SkipTooLarge
			case f.after == "":
				file.Diff, file.Whole, file.Action, file.Skipped = "", nil, review.ActionDelete, review.SkipDeleted
			case f.before == "":
				file.Action = review.ActionAdd
			}
			if skip := policy.ByPath(file.DepotPath); file.Skipped == "" && skip.Reason != "" {
				file.Diff, file.Whole, file.Skipped = "", nil, skip.Reason
			}
			change.Files = append(change.Files, file)
		}
		return err
	})
	change.Context = pack.New(ctx, outline.NewParser(), cfg.P4.Context, change.Files).Context()
	return change, err
}

// changedFiles reads the text files that differ between two commits of the git repository
// in the working directory.
func changedFiles(ctx context.Context, commits string) (files []editedFile, err error) {
	err = onRange(commits, func(repository *git.Repository, from, to string) error {
		files, err = readRange(ctx, repository, from, to)
		return err
	})
	return files, err
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

func readRange(ctx context.Context, repository *git.Repository, from, to string) (files []editedFile, err error) {
	raw, err := repository.Output(ctx, "diff", "--raw", "--no-abbrev", "--no-renames", "-z", "--end-of-options", from, to)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s..%s: %w: run it in a git repository that has both commits", from, to, err)
	}
	fields := strings.Split(raw, "\x00")
	for i := 0; i+1 < len(fields); i += 2 { // ":MODE MODE BLOB BLOB STATUS", then the path
		words := strings.Fields(fields[i])
		f := editedFile{path: fields[i+1]}
		for n, text := range []*string{&f.before, &f.after} {
			if id := words[2+n]; strings.Trim(id, "0") != "" && !strings.HasSuffix(words[n], "160000") { // a submodule
				content, err := repository.Blob(id)
				if err != nil {
					return nil, fmt.Errorf("read %s: %w", f.path, err)
				}
				*text = string(content)
			}
		}
		if !strings.Contains(f.before+f.after, "\x00") {
			files = append(files, f)
		}
	}
	return files, nil
}
