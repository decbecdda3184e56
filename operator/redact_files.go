package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/review"
)

// An editedFile is both texts of a file; one of them may be empty.
type editedFile struct{ path, before, after string }

// contextLines is the default of p4.context_lines.
const contextLines = 10

// redactFiles prints the diffs of files as a model would see them. As in a review, the
// whole texts decide what is masked.
func (r *redactor) redactFiles(files []editedFile, stdout io.Writer) error {
	var change review.Change
	for _, f := range files {
		if len(f.before)+len(f.after) > review.MaxWhole {
			return failure.Errorf(failure.TooLarge, "redact %s: its texts have more than %d bytes: a review skips such a file", f.path, review.MaxWhole)
		}
		change.Files = append(change.Files, review.File{
			DepotPath: f.path, Action: review.ActionEdit, Diff: p4.Diff(f.path, f.before, f.after, contextLines), Whole: review.Compress(f.after),
		})
	}
	redacted, err := r.pipeline.Change(change)
	if err != nil {
		return err
	}
	for _, f := range redacted.Files {
		if _, err := fmt.Fprintf(stdout, "--- %s\n+++ %[1]s\n%s", f.Path, f.Diff); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the files of --before and --after.
func (r *redactor) readFiles() ([]editedFile, error) {
	var texts [2]string
	for i, name := range []string{r.before, r.after} {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(data)
	}
	return []editedFile{{cmp.Or(r.after, r.before), texts[0], texts[1]}}, nil
}

// readRange reads the text files that differ between two commits of the git repository
// in the working directory.
func (r *redactor) readRange(ctx context.Context) ([]editedFile, error) {
	from, to, ok := strings.Cut(r.gitRange, "..")
	if !ok || from == "" || to == "" {
		return nil, badUsage("--git wants two commits, such as main..HEAD")
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the user runs git on the own repository
		return string(out), err
	}
	names, err := git("diff", "--name-only", "--no-renames", "-z", "--end-of-options", from, to)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w: run it in a git repository that has both commits", r.gitRange, err)
	}
	var files []editedFile
	for path := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		f := editedFile{path: path}
		f.before, _ = git("show", "--end-of-options", from+":"+path) // fails if the file was added
		f.after, _ = git("show", "--end-of-options", to+":"+path)
		if path != "" && !strings.Contains(f.before+f.after, "\x00") {
			files = append(files, f)
		}
	}
	return files, nil
}
