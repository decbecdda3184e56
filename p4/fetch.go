package p4

import (
	"cmp"
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// Fetch reads a submitted changelist. A file that is not read has the reason in
// Skipped; a changelist without visible files has the reason in Empty.
//
// If a path is denied by the allow list, nothing of the change is read: every file
// is skipped as not allowed, there is no description, and the author is the only
// recipient, for file names can be under embargo, too. The same holds if the change
// may have files that the account may not list, or has none that it may list. With
// [ReviewAllowedOnly] that holds only if all visible paths are denied.
//
// If a skip rule matches, only the description is read, and the rule is in SkippedBy.
//
// Errors have a class and do not name the changelist. A changelist that is not
// submitted is InputInvalid; one that the server does not know is NotFound, or
// ReplicaBehind if the server knows none that is as new.
func (f *ChangeFetcher) Fetch(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.fetch(ctx, number, false)
}

// FetchShelf reads the shelf of a pending changelist as Fetch reads a submitted
// one, and compares its files with the revisions they are based on. The author is
// the only recipient. If the shelf is empty or gone, the change is skipped: it was
// submitted or deleted.
func (f *ChangeFetcher) FetchShelf(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.fetch(ctx, number, true)
}

func (f *ChangeFetcher) fetch(ctx context.Context, number review.Changelist, shelved bool) (review.Change, error) {
	if number < 1 {
		return review.Change{}, failure.Errorf(failure.InputInvalid, "changelist number %d is not positive", number)
	}
	s, err := f.connected(ctx)
	if err != nil {
		return review.Change{}, err
	}
	d, err := s.describe(ctx, number, shelved)
	if shelved && failure.ClassOf(err) == failure.NotFound {
		return review.Change{Number: number, Shelved: true, SkippedBy: review.SkipRuleGone}, nil
	}
	if err != nil {
		return review.Change{}, err
	}
	if rule := cmp.Or(d.SkippedBy, f.skip.match(d, s.info.foldsCase())); rule != "" {
		return review.Change{Number: number, User: d.User, Time: d.Time, Shelved: shelved, SkippedBy: rule}, nil
	}
	x := fetch{s, f.cfg, f.list, f.selection, d}
	return x.read(ctx)
}

// A fetch reads one changelist.
type fetch struct {
	*server
	cfg       Config
	list      AllowList
	selection *selection.Policy
	description
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
		if change.Jobs, err = x.withTexts(ctx, x.Jobs); err != nil {
			return review.Change{}, err
		}
	}
	change.Files = make([]review.File, 0, len(x.files))
	for _, file := range x.files {
		change.Files = append(change.Files, file.File)
	}
	authorOnly := denied || x.Shelved
	change.Recipients, change.Unresolved, err = x.recipients(ctx, x.user, x.Number, authorOnly)
	return change, err
}
