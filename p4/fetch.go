package p4

import (
	"cmp"
	"context"
	"errors"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Fetch reads a submitted changelist. A file that is not read has the reason in
// Skipped; a changelist without visible files has the reason in Empty.
//
// If a path is denied by the allow list, nothing of the change is read: every file is
// skipped as not allowed, there is no description, and the author is the only recipient,
// because file names can be under embargo, too. The same holds if the change may have
// files that the account may not list, or has none that it may list. With
// [ReviewAllowedOnly] that holds only if all visible paths are denied.
//
// If a skip rule matches, only the description is read, and the rule is in SkippedBy.
//
// Errors have a class and do not name the changelist. For a changelist that the server
// does not know it is NotFound, or ReplicaBehind if all changelists that the server knows
// are older. For a pending changelist it is ReplicaBehind, or InputInvalid if the server
// does not lag.
func (f *ChangeFetcher) Fetch(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.Read(ctx, number, review.Reading{})
}

// Read reads a submitted changelist as Fetch does, or a shelf. The files of a shelf
// are compared with the revisions they are based on, and the author is the only
// recipient. If the shelf is empty, gone or older than the trigger reported, the
// error is ReplicaBehind; if the server does not lag, or in the last attempt, a shelf
// that is gone is skipped: it was submitted or deleted.
//
// In the last attempt, files whose content a replica lacks are skipped, too.
func (f *ChangeFetcher) Read(ctx context.Context, number review.Changelist, how review.Reading) (review.Change, error) {
	if number < 1 {
		return review.Change{}, failure.Errorf(failure.InputInvalid, "changelist number %d is not positive", number)
	}
	s, err := f.connected(ctx)
	if err != nil {
		return review.Change{}, err
	}
	d, err := s.describe(ctx, number, how)
	if err != nil {
		return review.Change{}, err
	}
	if rule := cmp.Or(d.SkippedBy, f.skip.match(d, s.info.CaseHandling)); rule != "" {
		return review.Change{Number: number, User: d.User, Time: d.Time, Shelved: how.Shelved, SkippedBy: rule}, nil
	}
	x := fetch{f, s, d, how}
	return x.read(ctx)
}

// A fetch reads one changelist.
type fetch struct {
	*ChangeFetcher
	*server
	description
	how review.Reading
}

// read reads the allowed parts of the changelist.
func (x *fetch) read(ctx context.Context) (change review.Change, err error) {
	change = x.Change
	denied, err := x.deny(ctx)
	if err != nil {
		return review.Change{}, err
	}
	if denied {
		change.Description, change.Jobs = "", nil
	} else {
		if err := x.readContents(ctx); err != nil {
			return review.Change{}, err
		}
		change.Jobs, err = x.withTexts(ctx, x.Jobs)
		if err = x.orGap(review.GapJobs, err); err != nil {
			return review.Change{}, err
		}
	}
	change.Files = make([]review.File, 0, len(x.files))
	for _, file := range x.files {
		change.Files = append(change.Files, file.File)
	}
	if !denied {
		change.Rules, err = x.readRules(ctx)
		if err = x.orGap(review.GapRules, err); err == nil {
			err = x.readContext(ctx, &change)
		}
		if err != nil {
			return review.Change{}, err
		}
	}
	authorOnly := denied || x.Shelved
	change.Recipients, change.Unresolved, err = x.recipients(ctx, authorOnly)
	change.Gaps, change.NewlyDamaged = x.Gaps, x.NewlyDamaged
	return change, err
}

// orGap returns nil and records the gap if the review continues without what a command
// failed to read: another attempt would fail, too, and what is missing is not the change
// itself. Otherwise it returns err.
func (x *fetch) orGap(gap review.Gap, err error) error {
	class := failure.ClassOf(err)
	if err == nil || class == failure.AuthDenied || !x.how.LastAttempt && class.Retryable() || errors.Is(err, context.Canceled) {
		return err
	}
	x.Gaps = append(x.Gaps, gap)
	return nil
}
