package p4

import (
	"cmp"
	"context"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// deny checks the paths of the changelist when it is described. It marks the
// denied files and reports whether the whole change is denied: unless MixedChanges
// allows otherwise, one denied path denies all files (security 9.1.4), and so does
// one that the account may not list: with ReviewAllowedOnly, that is a gap of the
// review. A change without visible files is denied.
func (x *fetch) deny(ctx context.Context) (whole bool, err error) {
	var paths []string
	for _, file := range x.files {
		paths = append(paths, withoutControls(file.path))
	}
	if x.denied(ctx, paths) != nil {
		whole = true
		for _, file := range x.files {
			if x.cfg.MixedChanges == ReviewAllowedOnly && x.list.Check(withoutControls(file.path), x.info.CaseHandling) == nil {
				whole = false
			} else {
				file.Skipped = review.SkipNotAllowed
			}
		}
		return whole, nil
	}
	listsAll := false
	if len(x.files) > 0 && !x.exceeds() {
		if listsAll, err = x.listsAll(ctx); err != nil && (ctx.Err() != nil || !x.how.LastAttempt) {
			return true, err
		}
	}
	switch {
	case x.Empty == review.EmptyTooLarge, x.Empty == review.EmptyStream:
		return true, nil
	case listsAll:
		return false, nil
	case x.cfg.MixedChanges == ReviewAllowedOnly && len(x.files) > 0:
		x.Gaps = append(x.Gaps, review.GapHidden)
		return false, nil
	}
	for _, file := range x.files {
		file.Skipped = review.SkipHidden
	}
	x.Log.LogAttrs(ctx, slog.LevelWarn, "security event", slog.String("event", "files may be hidden from the account"),
		slog.Int64("changelist", int64(x.Number)), slog.Int("visible_files", len(x.files)))
	return true, nil
}

// withoutControls replaces the control characters of a path: no entry of the allow list has
// them, and a file with such a name is not read, but it must not deny the others.
func withoutControls(path string) string {
	bytes := []byte(path)
	for i, b := range bytes {
		if isControl(rune(b)) {
			bytes[i] = '_'
		}
	}
	return string(bytes)
}

// guard checks the paths of revisions a second time, right before they are passed to p4
// (security 9.1.3). It denies a path only if deny, or the code after it, has a bug.
func (x *fetch) guard(ctx context.Context, specs []string) error {
	var paths []string
	for _, spec := range specs {
		paths = append(paths, pathOf(spec))
	}
	if err := x.denied(ctx, paths); err != nil {
		return failure.Errorf(failure.PathNotAllowed, "read files: %w: nothing was read", err)
	}
	return nil
}

// denied returns the reason of the first denied path, nil if all are allowed. For
// each reason it logs a security event with up to 100 paths (security 9.1.4).
func (x *fetch) denied(ctx context.Context, paths []string) error {
	var first error
	reasons, byReason := []string{}, map[string][]string{}
	for _, path := range paths {
		if err := x.list.Check(path, x.info.CaseHandling); err != nil {
			first = cmp.Or(first, err)
			if byReason[err.Error()] == nil {
				reasons = append(reasons, err.Error())
			}
			byReason[err.Error()] = append(byReason[err.Error()], path)
		}
	}
	for _, reason := range reasons {
		x.Log.LogAttrs(ctx, slog.LevelWarn, "security event", slog.String("event", "depot path denied"),
			slog.Int64("changelist", int64(x.Number)), slog.String("reason", reason),
			slog.Int("denied_paths", len(byReason[reason])), slog.String("denied_path", strings.Join(byReason[reason][:min(100, len(byReason[reason]))], ", ")))
	}
	return first
}

// p4 describe, files, changes and the like leave out the files that the account may
// not list, without a message and from every count. So a list of files is complete
// only if the account may list all files, which p4 protects shows, and if nothing
// else in the description contradicts it.

// exceeds reports whether the server's common path of all files of the change, such as
// //depot/a/* or //depot/a/..., is wider than the common path of the visible files. The
// server stored it with the change. A shelf has none.
func (x *fetch) exceeds() bool {
	root, pattern := path.Split(x.fold(x.root))
	dir, deep := parent(x.fold(x.files[0].path)), false
	for _, file := range x.files {
		for !strings.HasPrefix(x.fold(file.path), dir) {
			dir = parent(strings.TrimSuffix(dir, "/"))
		}
	}
	for _, file := range x.files {
		deep = deep || strings.Contains(x.fold(file.path)[len(dir):], "/")
	}
	return root != "" && strings.HasPrefix(dir, root) && (dir != root || pattern == "..." && !deep)
}

// parent returns the directory of a path, with its final slash.
func parent(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// listsAll reports whether the account's protections prove that it may list every
// file of the server. A refusal is not a proof. Exclusions that the server hides
// (dm.protects.hide) cannot be seen.
func (s *server) listsAll(ctx context.Context) (all bool, err error) {
	empty := false
	err = s.Run(ctx, command.Cmd{Name: "protects"}, func(rec command.Record) error {
		if rec.Code == "stat" { // the last line that matches a file counts
			_, excludes := rec.Fields["unmap"]
			right, isRight := strings.CutPrefix(rec.Fields["perm"], "=")
			if excludes {
				all = all && isRight && right != "list"
			} else if rec.Fields["depotFile"] == "//..." && rec.Fields["host"] == "*" && !isRight { // a line for some hosts proves nothing
				all = all || slices.Contains([]string{"list", "read", "open", "write", "review", "admin", "super"}, right)
			}
		}
		// Without a table, every user has every permission.
		empty = empty || strings.Contains(rec.Fields["data"], "Protections table is empty")
		if empty {
			return nil
		}
		return rec.Err()
	})
	switch {
	case err == nil:
		return all || empty, nil
	case ctx.Err() != nil || failure.ClassOf(err).Retryable():
		return false, err
	}
	return false, nil
}
