package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/p4/local"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// gitChange reads commits, such as main..HEAD, as one changelist whose paths are below
// //git.
func gitChange(ctx context.Context, cfg *settings.Config, commits string) (change review.Change, err error) {
	policy, err := selection.New(cfg.Selection)
	if err != nil {
		return change, err
	}
	err = onCommits(ctx, commits, cfg.P4.CharsetFallback, func(about review.Change, edits []local.Edit, after *local.Tree) error {
		change, err = local.Change(ctx, "//git/", edits, policy, after)
		change.User, change.Time, change.Description = about.User, about.Time, about.Description
		return err
	})
	return change, err
}

// changedFiles reads the text files that differ between two commits, and names those that are
// too large.
func changedFiles(ctx context.Context, commits string) (files []local.Edit, err error) {
	err = onCommits(ctx, commits, "", func(_ review.Change, edits []local.Edit, _ *local.Tree) error {
		files = slices.DeleteFunc(edits, func(e local.Edit) bool { return e.Skipped != "" && e.Skipped != review.SkipTooLarge })
		return nil
	})
	return files, err
}

// onCommits reads commits of the git repository in the working directory.
func onCommits(ctx context.Context, commits, charset string, use func(about review.Change, edits []local.Edit, after *local.Tree) error) error {
	from, to, ok := strings.Cut(commits, "..")
	if !ok || from == "" || to == "" {
		return badUsage("--git wants two commits, such as main..HEAD")
	}
	repository, err := git.Open(".")
	if err != nil {
		return advise(err, "run the command in the working directory of a git repository")
	}
	about, edits, err := local.Commits(ctx, repository, from, to, charset)
	if err == nil {
		err = use(about, edits, &local.Tree{Repository: repository, Commit: to, Charset: charset})
	}
	return errors.Join(err, repository.Close())
}
