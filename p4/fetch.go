package p4

import (
	"cmp"
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// Fetch reads a submitted changelist. A file that cannot or should not be read
// is in the change with the reason in Skipped; a changelist without visible
// files has its reason in Empty.
//
// If a path is outside the allow-list nothing of the change is fetched: every
// file is skipped as not allowed, there is no description, and nobody but the
// author is told, for the names of files can be under embargo too (security 9.1).
// With [ReviewAllowedOnly] that holds if all paths are denied.
//
// Of a change that a skip rule names nothing but the description is read, and
// the rule is in SkippedBy.
//
// Errors have a class and leave it to the caller to name the changelist. One that
// is not submitted is InputInvalid; one the server does not know is NotFound, or
// ReplicaBehind if the server knows none that is as new.
func (f *ChangeFetcher) Fetch(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.fetch(ctx, number, false)
}

// FetchShelf reads what is shelved in a pending changelist, as Fetch reads what
// was submitted, and compares it with the revisions it is based on. It belongs to
// its author, who alone is told. If nothing is shelved there any more the change
// is skipped: it was submitted meanwhile, or thrown away.
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
	if rule := cmp.Or(d.SkippedBy, f.skip.why(d, s.info.foldsCase())); rule != "" {
		return review.Change{Number: number, User: d.User, Time: d.Time, Shelved: shelved, SkippedBy: rule}, nil
	}
	x := fetch{s, f.cfg, f.list, f.selection, d}
	return x.read(ctx)
}

// A fetch is one changelist being fetched.
type fetch struct {
	*server
	cfg       Config
	list      AllowList
	selection *selection.Policy
	description
}

// read reads what may be read of the changelist.
func (x *fetch) read(ctx context.Context) (change review.Change, err error) {
	change = x.Change
	denied := x.deny(ctx)
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
	subscribed := x.Number
	if denied || x.Shelved {
		subscribed = 0 // the author alone is told
	}
	change.Recipients, change.Unresolved, err = x.recipients(ctx, x.user, subscribed)
	return change, err
}
