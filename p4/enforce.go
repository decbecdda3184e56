package p4

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// deny checks the paths of the changelist when it is described. It marks the
// denied files and reports whether the whole change is denied: unless MixedChanges
// allows otherwise, one denied path denies all files (security 9.1.4), and so does
// one that the account may not list: with ReviewAllowedOnly, that is a gap of the
// review. A change without visible files is denied.
func (x *fetch) deny(ctx context.Context) (bool, error) {
	var paths []string
	for _, file := range x.files {
		paths = append(paths, file.path)
	}
	if x.denied(ctx, paths) == nil {
		hides, err := x.hides(ctx)
		if hides && x.cfg.MixedChanges == ReviewAllowedOnly && len(paths) > 0 {
			x.Gaps = append(x.Gaps, review.GapHidden)
			return false, err
		}
		if hides {
			x.refuse(ctx)
		}
		return hides, err
	}
	whole := true
	for _, file := range x.files {
		if x.cfg.MixedChanges == ReviewAllowedOnly && x.list.Check(file.path, x.info.CaseHandling) == nil {
			whole = false
		} else {
			file.Skipped = review.SkipNotAllowed
		}
	}
	return whole, nil
}

// guard checks paths a second time, right before they are passed to p4
// (security 9.1.3). It denies a path only if deny, or the code after it, has a bug.
func (x *fetch) guard(ctx context.Context, paths []string) error {
	if err := x.denied(ctx, paths); err != nil {
		return failure.Errorf(failure.PathNotAllowed, "read files: %w: nothing was read", err)
	}
	return nil
}

// denied returns the reason of the first denied path, nil if all are allowed. For
// each reason it logs a security event with the first path (security 9.1.4).
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
		x.lg.LogAttrs(ctx, slog.LevelWarn, "security event", slog.String("event", "depot path denied"),
			slog.Int64("changelist", int64(x.Number)), slog.String("reason", reason),
			slog.Int("denied_paths", len(byReason[reason])), slog.String("denied_path", byReason[reason][0]))
	}
	return first
}
