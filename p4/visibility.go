package p4

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// p4 describe, files, changes and the like leave out the files that the account may
// not list, without a message and from every count. So a list of files is complete
// only if the account may list all files, which p4 protects shows, and if nothing
// else in the description contradicts it.

// hides reports whether the changelist may have files that the account may not list.
func (x *fetch) hides(ctx context.Context) (bool, error) {
	if len(x.files) == 0 || x.exceeds() {
		return true, nil
	}
	all, err := x.listsAll(ctx)
	return !all, err
}

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

// refuse denies the whole change because of files that may be hidden, and logs a
// security event.
func (x *fetch) refuse(ctx context.Context) {
	for _, file := range x.files {
		file.Skipped = review.SkipHidden
	}
	x.lg.LogAttrs(ctx, slog.LevelWarn, "security event", slog.String("event", "files may be hidden from the account"),
		slog.Int64("changelist", int64(x.Number)), slog.Int("visible_files", len(x.files)))
}

// listsAll reports whether the account's protections prove that it may list every
// file of the server. A refusal is no proof. Exclusions that the server hides
// (dm.protects.hide) cannot be seen.
func (s *server) listsAll(ctx context.Context) (all bool, err error) {
	empty := false
	err = s.run(ctx, command{name: "protects"}, func(rec record) error {
		if rec.code == "stat" {
			all = protection(rec.fields).appliesTo(all)
		}
		// Without a table, every user has every permission.
		empty = empty || strings.Contains(rec.fields["data"], "Protections table is empty")
		if empty {
			return nil
		}
		return rec.err()
	})
	switch {
	case err == nil:
		return all || empty, nil
	case ctx.Err() != nil || failure.ClassOf(err).Retryable():
		return false, err
	}
	return false, nil
}

// A protection is one line of the protections table, as p4 protects reports it. The
// last line that matches a file counts.
type protection map[string]string

// appliesTo returns whether all files may be listed after the line, if all says whether
// they may before it. A line for some hosts only may exclude, but proves nothing.
func (p protection) appliesTo(all bool) bool {
	_, excludes := p["unmap"]
	right, isRight := strings.CutPrefix(p["perm"], "=")
	switch {
	case excludes:
		return all && isRight && right != "list"
	case p["depotFile"] == "//..." && p["host"] == "*" && !isRight:
		return all || slices.Contains([]string{"list", "read", "open", "write", "review", "owner", "admin", "super"}, right)
	}
	return all
}
