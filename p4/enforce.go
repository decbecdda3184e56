package p4

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// deny is the check at the time the changelist is read. It marks the files that
// are not allowed and reports whether the change is denied as a whole: then all
// are marked. A change of which some files are denied is, unless MixedChanges
// says otherwise (security 9.1).
func (x *fetch) deny(ctx context.Context) bool {
	var paths []string
	for _, file := range x.files {
		paths = append(paths, file.path)
	}
	if x.denied(ctx, paths) == nil {
		return false
	}
	whole := true
	for _, file := range x.files {
		if x.cfg.MixedChanges == ReviewAllowedOnly && x.list.Check(file.path, x.info.foldsCase()) == nil {
			whole = false
		} else {
			file.Skipped = review.SkipNotAllowed
		}
	}
	return whole
}

// guard is the check at the time single files are read, right before their
// paths are handed to p4. It refuses nothing that deny let pass, unless there is
// a bug (security 9.1, defence in depth).
func (x *fetch) guard(ctx context.Context, paths []string) error {
	if err := x.denied(ctx, paths); err != nil {
		return failure.Errorf(failure.PathNotAllowed, "read files: %w: nothing was read", err)
	}
	return nil
}

// denied returns why the first of the denied paths is denied, nil if none is,
// and writes the security event.
func (x *fetch) denied(ctx context.Context, paths []string) error {
	var reason error
	var first string
	count := 0
	for _, path := range paths {
		if err := x.list.Check(path, x.info.foldsCase()); err != nil {
			first, reason = cmp.Or(first, path), cmp.Or(reason, err)
			count++
		}
	}
	if reason != nil {
		x.lg.LogAttrs(ctx, slog.LevelWarn, "security event", slog.String("event", "depot path denied"),
			slog.Int64("changelist", int64(x.Number)), slog.String("reason", reason.Error()),
			slog.Int("denied_paths", count), slog.String("denied_path", first))
	}
	return reason
}
